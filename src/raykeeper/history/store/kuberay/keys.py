"""KubeRay's keys, relative to its root: what each says. Pure; docs/storage-layout.md has the picture."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from raykeeper.layout.keys import SessionId
from raykeeper.times import to_ns

_PREFIX = "restful__"
_SLASH = "__"

KNOWN_PATHS = (
    "/api/serve/applications/",
    "/api/jobs/",
    "/api/v0/cluster_metadata",
    "/api/v0/placement_groups?detail=1&limit=10000",
    "/api/cluster_status?format=1",
    "/api/train/v2/runs/v1",
    "/nodes?view=summary",
    "/timezone",
)
"""What KubeRay's collector asks for by itself, and what users add to it; some end in a slash, which the name lost."""


def to_stored_name(path: str) -> str:
    """The name that KubeRay gives to the answer of a path."""
    return _PREFIX + path.strip("/").replace("/", _SLASH)


_BY_NAME = {to_stored_name(path): path for path in KNOWN_PATHS}


def to_path(name: str) -> str | None:
    """The path that was asked, as far as the name tells; None for a name that KubeRay gives to nothing."""
    if not name.startswith(_PREFIX) or name == _PREFIX:
        return None
    return _BY_NAME.get(name) or f"/{name.removeprefix(_PREFIX).replace(_SLASH, '/')}"


MARKERS_PREFIX = "cluster-metadata/"
HISTORY_PREFIX = "cluster-history/"
PLAIN_KIND = "raycluster"
OWNER_KINDS: Mapping[str, str] = {"rayjob": "RayJob", "rayservice": "RayService"}
"""Kinds in keys, and as Kubernetes spells them."""

_NS_DIGITS = 19  # of nanoseconds since 1970, from 2001 to 2286
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")  # DNS-1123 subdomain, which KubeRay's collector insists on
_SESSION = re.compile(r"session_(\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_\d{6})(_\d+)?")
_MARKER = re.compile(MARKERS_PREFIX + r"(?P<kind>[a-z]+)/(?P<names>[^/]+)/(?P<session>[^/]+)")
_EVENTS = re.compile(
    r"(?P<node>[^/]+)/(?:node_events|job_events/[^/]+)/"
    r"[^/]*-(?P<hour>\d{4}-\d\d-\d\d-\d\d)(?:-(?P<ns>\d+))?(?:\.jsonl)?(?P<gzip>\.gz)?"
)
_LOG = re.compile(r"(?P<node>[^/]+)/logs/(?P<path>.+)")
_FETCHED = re.compile(r"fetched_endpoints/(?P<name>[^/]+)")


@dataclass(frozen=True, order=True)
class KubeRayPlace:
    """Where one session is."""

    session: SessionId
    kind: str = PLAIN_KIND
    owner: str = ""

    @property
    def prefix(self) -> str:
        """Of everything but the marker."""
        names = [self.session.namespace, *([self.owner] if self.owner else []), self.session.cluster]
        return f"{HISTORY_PREFIX}{self.kind}/{'/'.join(names)}/{self.session.session}/"

    @property
    def marker_key(self) -> str:
        names = [self.session.namespace, *([self.owner] if self.owner else []), self.session.cluster]
        return f"{MARKERS_PREFIX}{self.kind}/{'_'.join(names)}/{self.session.session}"

    @property
    def owner_kind(self) -> str:
        return OWNER_KINDS.get(self.kind, "")

    @property
    def started_at(self) -> datetime:
        """As the session's name says it, taken for UTC as KubeRay does: the head's time zone is not in the store."""
        found = _SESSION.fullmatch(self.session.session)
        text = found[1] if found else "1970-01-01_00-00-00_000000"
        return datetime.strptime(text, "%Y-%m-%d_%H-%M-%S_%f").replace(tzinfo=UTC)


@dataclass(frozen=True)
class EventFile:
    node_id: str
    opened_ns: int
    is_exact: bool
    """The name has the moment, not the hour alone."""
    is_gzip: bool


@dataclass(frozen=True)
class LogFile:
    node_id: str
    path: str
    """Relative to the session's `logs/`."""


@dataclass(frozen=True)
class FetchedAnswer:
    path: str
    """That was asked of the head's dashboard."""


def is_session_name(name: str) -> bool:
    """Whether it is a name that Ray gives, with a moment that exists."""
    found = _SESSION.fullmatch(name)
    try:
        return bool(found and datetime.strptime(found[1], "%Y-%m-%d_%H-%M-%S_%f"))
    except ValueError:
        return False


def is_place_of_keys(session: SessionId) -> bool:
    """Whether KubeRay could have stored such a session; its names are then safe parts of a key."""
    names = (session.namespace, session.cluster)
    return is_session_name(session.session) and all(_NAME.fullmatch(name) for name in names)


def possible_places(session: SessionId) -> list[KubeRayPlace]:
    """Where a session without a marker may be: KubeRay calls an owner's cluster `<owner>-<five characters>`.

    Older versions put `-raycluster` between the two.
    """
    owner = session.cluster.rpartition("-")[0]
    owners = [name for name in dict.fromkeys([owner, owner.removesuffix("-raycluster")]) if name]
    return [KubeRayPlace(session), *(KubeRayPlace(session, kind, name) for kind in OWNER_KINDS for name in owners)]


def parse_marker(key: str) -> KubeRayPlace | None:
    """The session that a marker says exists; None for any other key."""
    found = _MARKER.fullmatch(key)
    if not found:
        return None
    namespace, *owner, cluster = (found["names"].split("_")) if "_" in found["names"] else ("", "")
    if len(owner) != (found["kind"] in OWNER_KINDS) or found["kind"] not in {PLAIN_KIND, *OWNER_KINDS}:
        return None
    place = KubeRayPlace(SessionId(namespace, cluster, found["session"]), found["kind"], *owner)
    return place if is_place_of_keys(place.session) and all(map(_NAME.fullmatch, owner)) else None


def parse_object(key: str) -> EventFile | LogFile | FetchedAnswer | None:
    """What an object is, from its key behind the session's prefix; None for what is no data."""
    if key.endswith("/"):
        return None  # a "folder" that KubeRay made
    if found := _EVENTS.fullmatch(key):
        return _event_file(found)
    if found := _LOG.fullmatch(key):
        return LogFile(found["node"], found["path"])
    if (found := _FETCHED.fullmatch(key)) and (path := to_path(found["name"])):
        return FetchedAnswer(path)
    return None


def _event_file(found: re.Match[str]) -> EventFile | None:
    is_exact = len(found["ns"] or "") == _NS_DIGITS
    try:
        # The hour is by the node's local time; it only places the file in the listing.
        hour = datetime.strptime(found["hour"], "%Y-%m-%d-%H").replace(tzinfo=UTC)
    except ValueError:
        return None
    opened_ns = int(found["ns"]) if is_exact else to_ns(hour)
    return EventFile(found["node"], opened_ns, is_exact, bool(found["gzip"]))
