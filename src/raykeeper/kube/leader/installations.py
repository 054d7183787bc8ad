"""Other installations of the operator: whose objects they cover, and whether ours must not start because of them.

A Lease only keeps replicas of one namespace apart. Two installations that cover the same objects would undo each
other's work without end, so the second refuses to start. Ours say on their Lease what they cover. KubeRay's do not: of
them we know what the user says, or what the arguments of the pod that holds the Lease say. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import NamedTuple

from raykeeper.api.meta import JSON
from raykeeper.errors import RaykeeperError
from raykeeper.kube.leader.lease import LeaseRecord, parse_lease

LEASE_NAME = "ray-operator-leader"
"""KubeRay's name for it: both operators must compete for the same one."""

WATCH_NAMESPACES = "raykeeper.io/watch-namespaces"
VERSION = "raykeeper.io/version"
POD = "raykeeper.io/pod"
HOLDER = "raykeeper.io/holder"
"""Whose annotations these are. client-go keeps what it does not know, so ours outlive a take-over by KubeRay."""

RENEWAL_SECONDS = 4.0  # a live holder renews every 2 s; twice that, as the API server may be slow

# Clocks further apart than this break tokens and certificates, so a lease that looks older is watched for one renewal
# only and not for its whole duration. KubeRay's operator leaves its lease held when it is removed, for ever.
DOUBT = timedelta(minutes=10)


class AnotherInstallation(RaykeeperError):
    """Another live installation covers the same objects."""


@dataclass(frozen=True)
class Coverage:
    """The namespaces an installation works in; none named means all."""

    namespaces: frozenset[str] = frozenset()

    def overlaps(self, other: Coverage) -> bool:
        if not self.namespaces or not other.namespaces:
            return True
        return not self.namespaces.isdisjoint(other.namespaces)

    def __str__(self) -> str:
        return ",".join(sorted(self.namespaces)) or "*"


@dataclass(frozen=True)
class Installation:
    """One installation as its Lease shows it."""

    namespace: str
    record: LeaseRecord
    covers: Coverage | None = None
    """None where nobody says so, as for KubeRay's operator with a configuration file."""
    version: str = ""
    pod: str = ""

    def may_overlap(self, ours: Coverage) -> bool:
        """Whether it covers what ours covers. One that is not known is in the way only of one that covers everything:
        teams that each have their own, in their own namespaces, are moved one after the other."""
        return not ours.namespaces if self.covers is None else self.covers.overlaps(ours)

    @property
    def rank(self) -> tuple[datetime, str]:
        """Of two that start at the same moment the lower one stays: who held its lease first, then by name."""
        return (self.record.acquired or datetime.max.replace(tzinfo=UTC), self.namespace)

    @property
    def patience(self) -> float:
        """Seconds in which a live holder renews, and one that has to yield does so."""
        return (self.record.duration_seconds or 0) + RENEWAL_SECONDS

    def looks_dead(self, now: datetime) -> bool:
        """Whether it ended long ago, as far as the wall clocks of two machines can tell."""
        limit = timedelta(seconds=self.patience) + DOUBT
        return self.record.renewed is None or now - self.record.renewed > limit


@dataclass(frozen=True)
class Ours:
    """Our own installation."""

    namespace: str
    covers: Coverage
    identity: str
    others: Mapping[str, Coverage] = field(default_factory=dict)
    """What the user says that other installations cover, by the namespace of their Lease."""


class Verdict(Enum):
    """What another installation means for ours."""

    HARMLESS = auto()
    UNDECIDED = auto()
    REFUSE = auto()


class Since(NamedTuple):
    """Seconds passed on our steady clock."""

    first_seen: float
    """Since we first saw the other's Lease."""
    asked: float
    """Since we began to ask whether we may start."""


def parse_coverage(text: str) -> Coverage:
    """A comma list of namespaces; `*` or nothing means all, as KubeRay's `--watch-namespace` has it."""
    names = frozenset(name.strip() for name in text.split(",")) - {""}
    return Coverage() if "*" in names else Coverage(names)


def lease_annotations(covers: Coverage, identity: str, version: str, pod: str) -> Mapping[str, str]:
    """What our Lease tells other installations."""
    return {WATCH_NAMESPACES: str(covers), VERSION: version, POD: pod, HOLDER: identity}


def parse_installation(lease: JSON) -> Installation:
    """The installation that holds, or held, this Lease."""
    metadata = lease["metadata"]
    record = parse_lease(lease)
    annotations = metadata.get("annotations") or {}
    if annotations.get(HOLDER) != record.holder or WATCH_NAMESPACES not in annotations:
        return Installation(metadata["namespace"], record)
    covers = parse_coverage(annotations[WATCH_NAMESPACES])
    return Installation(metadata["namespace"], record, covers, annotations.get(VERSION, ""), annotations.get(POD, ""))


def parse_others(text: str) -> dict[str, Coverage]:
    """What other installations cover: `kuberay-a=team-a,team-b;kuberay-c=team-c`. Raises `ValueError`."""
    others = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        namespace, equals, covered = (piece.strip() for piece in part.partition("="))
        if not namespace or not equals or not covered:
            raise ValueError(f"{part!r} is not written as <namespace of its lease>=<namespace>,<namespace>")
        others[namespace] = parse_coverage(covered)
    return others


def coverage_in_arguments(pod: JSON) -> Coverage | None:
    """What an operator with the arguments of this pod covers; None where a file may say otherwise."""
    containers = pod.get("spec", {}).get("containers") or []
    words = [str(word) for one in containers for word in (*(one.get("command") or ()), *(one.get("args") or ()))]
    if any(_flag(word) == "config" for word in words):
        return None
    for word, following in zip(words, [*words[1:], ""], strict=False):
        if _flag(word) == "watch-namespace":
            return parse_coverage(word.partition("=")[2] if "=" in word else following)
    return Coverage()


def _flag(word: str) -> str:
    """The name of a flag in one of Go's spellings; empty for what is no flag."""
    return word.lstrip("-").partition("=")[0] if word.startswith("-") else ""


def judge(first: Installation, latest: Installation, since: Since, ours: Installation | None, now: datetime) -> Verdict:
    """What an installation that covers the same objects means for ours; `ours` is None until we hold our own lease.

    It lives if its record changed under our eyes. Installations look once more after they got their leases, so of two
    at least one sees the other. The one of higher rank yields at once. The one of lower rank waits for that, and yields
    too if the other goes on: then the other had looked before we were there.
    """
    if not latest.record.holder:
        return Verdict.HARMLESS
    if latest.record == first.record:
        silence_allowed = RENEWAL_SECONDS if latest.looks_dead(now) else latest.patience
        return Verdict.HARMLESS if since.first_seen >= silence_allowed else Verdict.UNDECIDED
    may_yield = ours is not None and ours.rank < latest.rank and since.asked < latest.patience
    return Verdict.UNDECIDED if may_yield else Verdict.REFUSE


class Neighbours:
    """The other installations as they were first seen since this process started, and what they mean for ours."""

    def __init__(self, ours: Ours) -> None:
        self._ours = ours
        self._first: dict[str, tuple[Installation, float]] = {}

    def is_alone(self, found: Iterable[Installation], asked_at: float, steady: float, now: datetime) -> bool:
        """Whether none of the `found` is in our way, asking since `asked_at`; False means to look again.

        Raises AnotherInstallation. One in our own namespace is a replica of ours.
        """
        by_namespace = {installation.namespace: installation for installation in found}
        own = by_namespace.pop(self._ours.namespace, None)
        held = own if own is not None and own.record.holder == self._ours.identity else None
        rivals = [other for other in by_namespace.values() if other.may_overlap(self._ours.covers)]
        verdicts = [self._verdict(rival, asked_at, steady, held, now) for rival in rivals]
        return Verdict.UNDECIDED not in verdicts

    def _verdict(
        self, rival: Installation, asked_at: float, steady: float, held: Installation | None, now: datetime
    ) -> Verdict:
        first, seen_at = self._first.setdefault(rival.namespace, (rival, steady))
        verdict = judge(first, rival, Since(steady - seen_at, steady - asked_at), held, now)
        if verdict is Verdict.REFUSE:
            raise refusal(rival, self._ours)
        return verdict


def refusal(other: Installation, ours: Ours) -> AnotherInstallation:
    """One sentence that names the other installation, what it covers, and the cure."""
    who = f"another operator runs in namespace {other.namespace} (holder {other.record.holder}"
    here = f"this one in namespace {ours.namespace} covers {_spoken(ours.covers)}"
    if other.covers is None:
        return AnotherInstallation(
            f"{who}), and nobody says which namespaces it covers, so both may work on the same objects; {here}: "
            f"remove one, or say what it covers: --other-installations={other.namespace}=<namespace>,<namespace>"
        )
    return AnotherInstallation(
        f"{who}) and covers {_spoken(other.covers)}, so both would work on the same objects; {here}: "
        "remove one, or give them --watch-namespace lists without a common namespace"
    )


def _spoken(covers: Coverage) -> str:
    return f"namespaces {', '.join(sorted(covers.namespaces))}" if covers.namespaces else "all namespaces"
