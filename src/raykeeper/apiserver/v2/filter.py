"""Which requests are passed on to Kubernetes, and as what. Pure: whatever is not named here is not passed on.

A path is taken apart once, and put together again from its parts: what was looked at is what is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import quote, urlencode

from raykeeper.web.targets import Target, parse_query

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
READS: Final = frozenset({"GET", "HEAD"})
EVENTS: Final = {("api", "v1"): "involvedObject", ("apis", "events.k8s.io", "v1"): "regarding"}
"""Both places where Kubernetes serves Events, and what they call the object that one is about."""
TEMPLATED: Final = frozenset({"rayclusters", "rayjobs", "rayservices", "raycronjobs"})
_SEGMENT: Final = ":@!$&'()*+,;=~"
_SCHEMES: Final = frozenset({"", "http", "https"})

Kind = Literal["ray", "events", "service"]


class Refused(Exception):
    """A request that is about V2 and that nobody may make."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


@dataclass(frozen=True)
class Passed:
    """A request as it is sent to Kubernetes."""

    kind: Kind
    path: str
    """With the query, percent-encoded."""
    namespace: str = ""
    resource: str = ""
    """Of kind `ray`: the plural; of kind `service`: the name of the Service, without scheme and port."""
    name: str = ""
    subresource: str = ""

    @property
    def may_have_templates(self) -> bool:
        """Whether its body is a whole object, or a patch of one, that may name compute templates."""
        return self.kind == "ray" and bool(self.namespace) and self.resource in TEMPLATED and not self.subresource


def passed(method: str, target: Target) -> Passed | None:
    """What a request becomes; None for a path that is not about V2. Raises `Refused`."""
    segments = _segments(target.raw_path)
    if segments is None:
        return None
    if segments[:3] == ["apis", "ray.io", "v1"]:
        _check_method(method, METHODS)
        return _ray(segments, target)
    if (place := _events_place(segments)) is not None:
        return _events(segments, target, place) if method in READS else None
    if segments[:3] == ["api", "v1", "namespaces"] and segments[4:5] == ["services"] and segments[6:7] == ["proxy"]:
        _check_method(method, METHODS)
        return _service(segments, target)
    return None


def _segments(raw_path: str) -> list[str] | None:
    """The decoded parts of a path that begins as ours do. Raises `Refused` for one that could be read in two ways."""
    parts = raw_path.split("/")[1:]
    decoded = [Target.parse(f"/{part}").path[1:] for part in parts]
    if decoded[:1] not in (["api"], ["apis"]):
        return None
    inner = decoded[:-1] if decoded[-1] == "" else decoded
    if any(part in ("", ".", "..") or _is_ambiguous(part) for part in inner):
        if decoded[:2] == ["apis", "v1"]:
            return None  # the first version has names of its own
        raise Refused(400, "BadRequest", "a path with encoded slashes, dots or control characters is not passed on")
    return decoded


def _is_ambiguous(part: str) -> bool:
    return any(letter in "/\\" or letter < " " or letter == "\x7f" or "\ud800" <= letter <= "\udfff" for letter in part)


def _check_method(method: str, allowed: frozenset[str]) -> None:
    if method not in allowed:
        raise Refused(405, "MethodNotAllowed", f"{method[:20]} is not passed on")


def _ray(segments: Sequence[str], target: Target) -> Passed:
    rest = list(segments[3:])
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    resource, name, subresource, *_ = [*rest, "", "", ""]
    return Passed("ray", _joined(segments, target.raw_query), namespace, resource, name, subresource)


def _events_place(segments: Sequence[str]) -> tuple[str, ...] | None:
    for prefix in EVENTS:
        length = len(prefix)
        is_events = len(segments) == length + 3 and segments[length] == "namespaces" and segments[-1] == "events"
        if tuple(segments[:length]) == prefix and is_events:
            return prefix
    return None


def _events(segments: Sequence[str], target: Target, place: tuple[str, ...]) -> Passed:
    """Events about Ray objects alone: the caller's selectors are joined with ours, so that all must hold."""
    pairs = _query(target)
    selectors = [value for name, value in pairs if name == "fieldSelector" and value]
    selectors.append(f"{EVENTS[place]}.apiVersion=ray.io/v1")
    kept = [(name, value) for name, value in pairs if name != "fieldSelector"]
    query = urlencode([*kept, ("fieldSelector", ",".join(selectors))], errors="surrogateescape")
    return Passed("events", _joined(segments, query), segments[-2])


def _service(segments: Sequence[str], target: Target) -> Passed:
    name = service_name(segments[5])
    if name is None:
        raise Refused(400, "BadRequest", f"invalid service format: {segments[5][:200]}")
    return Passed("service", _joined(segments, target.raw_query), segments[3], name)


def service_name(text: str) -> str | None:
    """The name in `name`, `name:port` or `scheme:name:port`; None for what is none of them, as Kubernetes reads it."""
    parts = text.split(":")
    if len(parts) == 3:
        scheme, name, _ = parts
        return name if scheme in _SCHEMES and name else None
    if len(parts) <= 2:
        return parts[0] or None
    return None


def _query(target: Target) -> list[tuple[str, str]]:
    try:
        return parse_query(target.raw_query)
    except ValueError as exc:
        raise Refused(400, "BadRequest", str(exc)) from exc


def _joined(segments: Sequence[str], query: str) -> str:
    path = "/" + "/".join(quote(segment, safe=_SEGMENT) for segment in segments)
    return f"{path}?{query}" if query else path
