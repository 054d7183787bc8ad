"""A watch as batches of changes: the bytes of one streaming answer, cut into lines and decoded."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import msgspec

from raykeeper.api.meta import Object, ObjectMeta, Resource
from raykeeper.errors import Unavailable
from raykeeper.kube.http.answers import Status
from raykeeper.kube.http.requests import Query

O = TypeVar("O", bound=Object)  # noqa: E741 - reads as "object" beside T for "anything"

LINE_LIMIT = 16 * 1024 * 1024  # etcd refuses objects over 1.5 MB; ten times that is a broken stream, not an object


class Added(msgspec.Struct, Generic[O], tag_field="type", tag="ADDED", gc=False):
    """An object is there, maybe for the first time."""

    object: O


class Modified(msgspec.Struct, Generic[O], tag_field="type", tag="MODIFIED", gc=False):
    """An object changed."""

    object: O


class Deleted(msgspec.Struct, Generic[O], tag_field="type", tag="DELETED", gc=False):
    """An object is gone, or no longer matches the selector; carries its last state."""

    object: O


class _Versioned(msgspec.Struct):
    metadata: ObjectMeta


class Bookmark(msgspec.Struct, tag_field="type", tag="BOOKMARK"):
    """Nothing changed up to this resource version."""

    object: _Versioned

    @property
    def ends_first_list(self) -> bool:
        """Whether everything that there was when the watch began has been sent."""
        return self.object.metadata.annotations.get("k8s.io/initial-events-end") == "true"


class Failed(msgspec.Struct, tag_field="type", tag="ERROR"):
    """The server ends the watch and says why; 410 is the usual reason."""

    object: Status


Frame = Added[O] | Modified[O] | Deleted[O] | Bookmark | Failed


@dataclass(frozen=True)
class Selection(Generic[O]):
    """Which objects are meant: a kind, one namespace or all, and selectors as the API spells them."""

    resource: Resource[O]
    namespace: str | None = None
    labels: str | None = None
    fields: str | None = None

    def __str__(self) -> str:
        parts = [str(self.resource), self.namespace and f"in {self.namespace}", self.labels, self.fields]
        return " ".join(part for part in parts if part)


class Streams(Protocol):
    """The one thing a watch needs of the client."""

    def stream(self, path: str, params: Query, *, silence: float) -> AsyncGenerator[bytes, None]: ...


class Lines:
    """Cuts a byte stream at newlines, whatever the chunks; an unfinished line waits for its rest."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._pending: list[bytes] = []
        self._pending_bytes = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes. An unfinished line at the end of the stream is never given out."""
        *complete, rest = chunk.split(b"\n")
        if complete and self._pending:
            complete[0] = b"".join([*self._pending, complete[0]])
            self._pending, self._pending_bytes = [], 0
        if rest:
            self._pending.append(rest)
            self._pending_bytes += len(rest)
            if self._pending_bytes > self._limit:
                raise Unavailable("watch", f"a line longer than {self._limit} bytes")
        return [line for line in complete if line]


@functools.cache
def _decoder(kind: type[O]) -> msgspec.json.Decoder[Frame[O]]:
    # One pass decodes envelope and object; the tag says which frame it is, so nothing is parsed twice.
    return msgspec.json.Decoder(Added[kind] | Modified[kind] | Deleted[kind] | Bookmark | Failed)  # type: ignore[valid-type]


async def watch(
    streams: Streams, selection: Selection[O], resource_version: str | None, *, timeout_seconds: int, silence: float
) -> AsyncGenerator[list[Frame[O]], None]:
    """Batches of frames after `resource_version`, in order, until the server ends the watch.

    Without one they begin with all objects there are, as of now or later, up to a bookmark that says so: what
    Kubernetes calls a streaming list. The server answers it from memory, one object after the other.

    The first batch may be empty and says that the server has granted the watch. Raises what the client raises, and
    `Unavailable` when nothing came for `silence` seconds or a line is not JSON. Leaving early needs `aclose`.
    """
    params: Query = {
        "watch": True,
        "allowWatchBookmarks": True,
        "resourceVersion": resource_version,
        "timeoutSeconds": timeout_seconds,
        "labelSelector": selection.labels,
        "fieldSelector": selection.fields,
    }
    if resource_version is None:
        params = {**params, "sendInitialEvents": True, "resourceVersionMatch": "NotOlderThan"}
    decode, lines = _decoder(selection.resource.type).decode, Lines()
    chunks = streams.stream(selection.resource.path(selection.namespace), params, silence=silence)
    async with contextlib.aclosing(chunks):
        async for chunk in chunks:
            try:
                frames = [decode(line) for line in lines.feed(chunk)]
            except msgspec.DecodeError as exc:
                raise Unavailable(f"watch of {selection}", f"the stream is not a watch ({exc})") from exc
            yield frames
