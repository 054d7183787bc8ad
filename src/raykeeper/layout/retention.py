"""Objects about keeping and removing whole sessions: holds, removals under way, what was removed, and what is known of
each day's sessions. Pure data.

Holds, intents and starts of deletion are created once and never written over by another writer: who may do what follows
from which of them are there (docs/retention.md), and needs no compare-and-set.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, ClassVar, Literal

import msgspec
import zstandard

from raykeeper.layout.bounded import decompressed
from raykeeper.layout.keys import VERSION, SessionId
from raykeeper.layout.names import from_segment, to_segment
from raykeeper.layout.records import MIB, Count, Record, is_usable_time

RETENTION_PREFIX = f"{VERSION}/retention/"
HOLDS_PREFIX = f"{RETENTION_PREFIX}holds/"
REMOVALS_PREFIX = f"{RETENTION_PREFIX}removals/"
"""Of what is being removed; empty most of the time."""
REMOVED_PREFIX = f"{RETENTION_PREFIX}removed/"
CLAIMS_PREFIX = f"{RETENTION_PREFIX}claims/"
DAYS_PREFIX = f"{RETENTION_PREFIX}days/"
USAGE_KEY = f"{RETENTION_PREFIX}usage.json"

MOST_OF_DAY = 100_000
"""Sessions of one day that are known."""
MOST_NAMESPACES = 1000
"""Whose use is told one by one."""
_MAX_BYTES = 256 * MIB
_LEVEL = 9
_TEXT = Annotated[str, msgspec.Meta(max_length=500)]
_NAMES = r"(?P<namespace>[^/~]+)~(?P<cluster>[^/~]+)~(?P<session>[^/~]+)"
_SESSION_KEY = re.compile(rf"v1/retention/(?P<folder>holds|removals|removed)/{_NAMES}(?P<suffix>~begun\.json|\.json)")
_DAY_KEY = re.compile(r"v1/retention/days/(?P<day>\d{4}-\d\d-\d\d)/(?P<digest>[0-9a-f]{32})\.json\.zst")
_CLAIM_KEY = re.compile(r"v1/retention/claims/(?P<slot>\d{12})\.json")


class Hold(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A session that must stay, whatever its age. Created once; its creator confirms it, and anybody releases it."""

    at: datetime
    by: _TEXT = ""
    reason: _TEXT = ""
    is_confirmed: bool = False
    """No deletion had begun when it was there, and none may begin any more."""


class RemovalIntent(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A session that is to be removed: hidden from now on, deleted once nobody reads it any more."""

    started_at: datetime
    """Tells the day under which the catalog has it."""
    decided_at: datetime
    by: _TEXT
    """`retention` of which server, or the user of a command line."""
    rule: _TEXT
    reason: _TEXT
    """Why it goes, in one sentence."""
    bytes: Count = 0
    objects: Count = 0


class RemovedRecord(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What was removed: kept for some time, for people who still have the link."""

    started_at: datetime
    decided_at: datetime
    removed_at: datetime
    by: _TEXT
    rule: _TEXT
    reason: _TEXT
    bytes: Count = 0
    objects: Count = 0


class Claim(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Whose turn it is to sweep in one stretch of the store's time."""

    by: _TEXT
    at: datetime


class SessionFacts(msgspec.Struct, frozen=True, array_like=True):
    """What retention knows of one session, as of when its objects in the catalog were last looked at."""

    namespace: str
    cluster: str
    session: str
    started_at: datetime
    start_written: datetime
    end_written: datetime | None = None
    summary_written: datetime | None = None
    """When these objects of the catalog were written: if they are others, the rest is to be found out again."""
    is_final: bool = False
    ended_at: datetime | None = None
    outcome: str = ""
    """As the summary has it; empty where there is none."""
    bytes: Count | None = None
    """None where it was not measured yet."""
    objects: Count = 0
    last_written: datetime | None = None
    """When a collector last wrote to it, by the store's clock."""

    @property
    def id(self) -> SessionId:
        return SessionId(self.namespace, self.cluster, self.session)


class NamespaceUsage(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What one namespace has in the store."""

    namespace: str
    sessions: Count = 0
    bytes: Count = 0
    objects: Count = 0
    unmeasured: Count = 0
    """Sessions whose size is not known yet; they are missing in bytes and objects."""
    held: Count = 0
    oldest: datetime | None = None


class Usage(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What each namespace has in the store, the largest first."""

    limit_bytes: ClassVar[int] = 2 * MIB
    as_of: datetime
    namespaces: Annotated[tuple[NamespaceUsage, ...], msgspec.Meta(max_length=MOST_NAMESPACES)] = ()
    left_out: Count = 0
    """Further namespaces, the smallest, which are told together in `others`."""
    others: NamespaceUsage | None = None


def hold_key(session: SessionId) -> str:
    return f"{HOLDS_PREFIX}{_name(session)}.json"


def intent_key(session: SessionId) -> str:
    return f"{REMOVALS_PREFIX}{_name(session)}.json"


def begun_key(session: SessionId) -> str:
    """An object that says: from here on data is deleted, and nothing stops it."""
    return f"{REMOVALS_PREFIX}{_name(session)}~begun.json"


def removed_key(session: SessionId) -> str:
    return f"{REMOVED_PREFIX}{_name(session)}.json"


def claim_key(slot: int) -> str:
    return f"{CLAIMS_PREFIX}{slot:012d}.json"


def parse_claim_key(key: str) -> int | None:
    """The stretch of time it is about; None for any other key."""
    found = _CLAIM_KEY.fullmatch(key)
    return int(found["slot"]) if found else None


@dataclass(frozen=True)
class SessionMark:
    """What the key of a hold, a removal or a record of one says."""

    folder: Literal["holds", "removals", "removed"]
    session: SessionId
    is_begun: bool = False


def parse_session_mark(key: str) -> SessionMark | None:
    """The facts in the key; None for any other key."""
    found = _SESSION_KEY.fullmatch(key)
    if not found:
        return None
    try:
        session = SessionId(*(from_segment(found[part]) for part in ("namespace", "cluster", "session")))
    except ValueError:
        return None
    is_begun = found["suffix"] != ".json"
    folder: Literal["holds", "removals", "removed"] = found["folder"]  # type: ignore[assignment]  # by the pattern
    mark = SessionMark(folder, session, is_begun)
    own = f"{RETENTION_PREFIX}{folder}/{_name(session)}{'~begun' if is_begun else ''}.json"
    return mark if own == key and (folder == "removals" or not is_begun) else None


@dataclass(frozen=True, order=True)
class DayFactsKey:
    """Named after what is in it. The one that was written last counts."""

    day: date
    digest: str

    @property
    def key(self) -> str:
        return f"{day_facts_prefix(self.day)}{self.digest}.json.zst"


def day_facts_prefix(day: date) -> str:
    return f"{DAYS_PREFIX}{day.isoformat()}/"


def parse_day_facts_key(key: str) -> DayFactsKey | None:
    """The facts in the key; None for any other key."""
    found = _DAY_KEY.fullmatch(key)
    try:
        return DayFactsKey(date.fromisoformat(found["day"]), found["digest"]) if found else None
    except ValueError:
        return None


class DamagedFacts(ValueError):
    """The object is not what was written."""


def encode_day_facts(day: date, sessions: Iterable[SessionFacts]) -> tuple[DayFactsKey, bytes]:
    """The object, and the key that follows from it. The newest session is first."""
    text = msgspec.json.encode(list(sessions))
    digest = hashlib.blake2b(text, digest_size=16).hexdigest()
    return DayFactsKey(day, digest), zstandard.ZstdCompressor(level=_LEVEL).compress(text)


_DECODER: msgspec.json.Decoder[tuple[SessionFacts, ...]] = msgspec.json.Decoder(
    Annotated[tuple[SessionFacts, ...], msgspec.Meta(max_length=MOST_OF_DAY)]
)


def decode_day_facts(data: bytes) -> tuple[SessionFacts, ...]:
    """Raises DamagedFacts."""
    try:
        facts = _DECODER.decode(decompressed(data, _MAX_BYTES))
    except (zstandard.ZstdError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise DamagedFacts(str(exc)) from exc
    for one in facts:
        for time in (one.started_at, one.ended_at, one.last_written):
            if time is not None and not is_usable_time(time):
                raise DamagedFacts(f"{one.id} has a time at which no clock can be")
    return facts


def _name(session: SessionId) -> str:
    return "~".join(map(to_segment, (session.namespace, session.cluster, session.session)))
