"""What the sink reads of a request's head, and what it answers. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus

from raykeeper.collector.events.journal import BodyFlag

EVENTS_PATH = b"v1/events"
HEALTH_PATH = b"healthz"
"""Without the slashes around them: one too many is no reason to refuse for ever what Ray will repeat for ever."""
MAX_HEAD_BYTES = 64 * 1024
"""Of a request line with its headers; Ray's has 200. Protects memory."""

_ENCODINGS = {
    b"": BodyFlag.NONE,
    b"identity": BodyFlag.NONE,
    b"gzip": BodyFlag.GZIP,
    b"x-gzip": BodyFlag.GZIP,
    b"deflate": BodyFlag.DEFLATE,
}
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@dataclass
class RequestHead:
    """The request line and the headers that matter, as they come in."""

    method: bytes = b""
    url: bytes = b""
    size: int = 0
    headers: dict[bytes, bytes] = field(default_factory=dict)

    def add(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value.strip().lower()

    @property
    def path(self) -> bytes:
        """Without slashes at its ends; who believes in a proxy puts a whole URL before it."""
        path = self.url.partition(b"?")[0]
        if b"://" in path and not path.startswith(b"/"):
            path = path.partition(b"://")[2].partition(b"/")[2]
        return path.strip(b"/")

    @property
    def content_length(self) -> int:
        """0 where it is not said, as with chunks."""
        length = self.headers.get(b"content-length", b"")
        return int(length) if length.isdigit() else 0

    @property
    def encoding(self) -> BodyFlag:
        """How the body is compressed; Ray's never is, but a proxy may."""
        return _ENCODINGS.get(self.headers.get(b"content-encoding", b""), BodyFlag.UNKNOWN_ENCODING)

    @property
    def expects_continue(self) -> bool:
        return self.headers.get(b"expect") == b"100-continue"


def answer_without_body(head: RequestHead) -> HTTPStatus | None:
    """The answer to what is not a batch of events; None for one that is."""
    allowed = {EVENTS_PATH: b"POST", HEALTH_PATH: b"GET"}.get(head.path)
    if allowed is None:
        return HTTPStatus.NOT_FOUND
    if head.method != allowed:
        return HTTPStatus.METHOD_NOT_ALLOWED
    if b"origin" in head.headers:
        return HTTPStatus.FORBIDDEN  # a web page in a browser on this machine; no program of Ray's sends it
    return HTTPStatus.OK if head.path == HEALTH_PATH else None


def response(status: HTTPStatus, *, is_last: bool = False) -> bytes:
    """The bytes of an answer. Ray does not look at Retry-After, others may."""
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", "Content-Length: 0"]
    if status is HTTPStatus.SERVICE_UNAVAILABLE:
        lines.append("Retry-After: 5")  # Ray's own longest wait
    if is_last:
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
