"""Two runs side by side, as they are answered: every class is an object of the JSON API. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from raykeeper.history.overview.model import FunctionRow

Topic = Literal["outcome", "entrypoint", "runtime env", "versions", "resources"]


@dataclass(frozen=True)
class RunRef:
    """A whole session, or one of its jobs."""

    namespace: str
    cluster: str
    session: str
    job: str | None = None
    """The job's id, or its submission's."""

    def __str__(self) -> str:
        return "/".join(name for name in (self.namespace, self.cluster, self.session, self.job) if name)


@dataclass(frozen=True)
class ComparedRun:
    ref: RunRef
    status: str
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True)
class ComparedFact:
    """One fact of both runs; empty where a run has no such thing."""

    topic: Topic
    name: str
    a: str
    b: str

    @property
    def differs(self) -> bool:
        return self.a != self.b


@dataclass(frozen=True)
class ComparedFunction:
    """One function of both runs; None where a run never called it."""

    name: str
    a: FunctionRow | None
    b: FunctionRow | None


@dataclass(frozen=True)
class ComparedFailure:
    """Failed attempts with the same fingerprint; 0 where a run had none."""

    fingerprint: str
    error_type: str
    title: str
    a: int
    b: int


@dataclass(frozen=True)
class Comparison:
    """What is the same and what differs in two runs."""

    a: ComparedRun
    b: ComparedRun
    differing: tuple[ComparedFact, ...]
    same: tuple[ComparedFact, ...]
    functions: tuple[ComparedFunction, ...]
    """Those whose time changed most first."""
    functions_left_out: int
    failures: tuple[ComparedFailure, ...]
    """Those of one run alone first, then those of both."""
