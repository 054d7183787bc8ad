"""Processes that died outside of any task that is known to have failed of it: idle workers, actors nobody waited for,
and all of Ray Serve, whose calls Ray records no events of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from raykeeper.history.query.context import Row, SessionContext
from raykeeper.history.report.failures import death_context
from raykeeper.history.report.log_excerpts import worker_logs
from raykeeper.history.report.model import Address, LogSlice, Who, WhoKind
from raykeeper.history.report.naming import TRAIN_CLASS, actor_who, replica_of
from raykeeper.history.report.sql import DEATHS
from raykeeper.history.text import without_ansi

DEATHS_LIMIT = 200
"""The first of them: what dies again and again dies of the same."""
_LOGS_LIMIT = 10  # deaths whose logs are fetched: each costs reads of the store


@dataclass(frozen=True)
class Death:
    """One process that ended, as an actor's or a worker's."""

    at_ns: int
    job_id: str = ""
    exit_type: str = ""
    """Of the worker, as Ray names it; empty where Ray told of the actor alone."""
    exit_detail: str = ""
    node_id: str = ""
    node_ip: str = ""
    node_death: str = ""
    """Why its node died, as Ray names it."""
    worker_id: str = ""
    pid: int | None = None
    actor_id: str = ""
    name: str = ""
    class_name: str = ""
    is_detached: bool = False
    actor_death: Mapping[str, Any] = field(default_factory=dict)
    """Ray's `deathCause`: one context, by its name."""
    rank: str = ""
    """Its number among the workers of Ray Train, if it is one and a driver told."""
    logs: tuple[LogSlice, ...] = ()

    @property
    def id(self) -> str:
        return self.actor_id or self.worker_id

    @property
    def context(self) -> Mapping[str, Any]:
        """The one context of the actor's death."""
        found: Any = next(iter(self.actor_death.values()), None)
        return found if isinstance(found, dict) else {}

    @property
    def words(self) -> str:
        """What Ray says about it."""
        return without_ansi(self.exit_detail or str(self.context.get("errorMessage", "")))

    @property
    def who(self) -> Who:
        """As people call it: a deployment of Serve, an actor by its own name, or a worker."""
        if self.rank:
            return Who(WhoKind.RANK, self.rank)
        if self.actor_id:
            return actor_who(self.name, self.class_name, self.actor_id)
        return Who(WhoKind.PROCESS, f"with pid {self.pid}" if self.pid else "of a worker")

    @property
    def words_for_it(self) -> str:
        """The same within a sentence."""
        if found := replica_of(self.name):
            return f"replica {found[1]} of {found[0].text}"
        return self.who.text if self.actor_id else f"a worker process{f' (pid {self.pid})' if self.pid else ''}"

    @property
    def kind(self) -> str:
        """What dies alike: replicas of a deployment, actors of a class, workers of a job."""
        return self.who.name if replica_of(self.name) else self.name or self.class_name or self.job_id

    @property
    def address(self) -> Address:
        return Address(actor_id=self.actor_id, worker_id=self.worker_id, node_id=self.node_id)


async def read_deaths(context: SessionContext, job_id: str | None, ranks: Mapping[int, str]) -> tuple[Death, ...]:
    """Those that nobody is known to have asked for, the first first; the first of them with their last words.

    `ranks` are those of Ray Train by their pids.
    """
    rows = await context.rows(DEATHS, {"job_id": job_id, "limit": DEATHS_LIMIT})
    deaths = [_with_rank(_death(row), ranks) for row in rows]
    with_logs = [replace(one, logs=await _last_logs(context, one)) for one in deaths[:_LOGS_LIMIT]]
    return (*with_logs, *deaths[_LOGS_LIMIT:])


def _with_rank(death: Death, ranks: Mapping[int, str]) -> Death:
    return replace(death, rank=ranks.get(death.pid or 0, "")) if death.class_name == TRAIN_CLASS else death


async def _last_logs(context: SessionContext, death: Death) -> tuple[LogSlice, ...]:
    return await worker_logs(context, death.node_id, death.pid) if death.node_id and death.pid else ()


_FIELDS = frozenset(Death.__dataclass_fields__) - {"actor_death", "logs", "rank"}


def _death(row: Row) -> Death:
    known = {name: value for name, value in row.items() if name in _FIELDS and value is not None}
    return Death(**known, actor_death=death_context(row["last_death"]))
