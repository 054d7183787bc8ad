"""Processes that died outside of any task that is known to have failed of it: idle workers, actors nobody waited for,
and all of Ray Serve, whose calls Ray records no events of.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from raykeeper.history.query.context import Row, SessionContext
from raykeeper.history.report.failures import death_context
from raykeeper.history.report.log_excerpts import worker_logs
from raykeeper.history.report.model import LogSlice
from raykeeper.history.report.sql import DEATHS
from raykeeper.history.text import without_ansi

DEATHS_LIMIT = 200
"""The first of them: what dies again and again dies of the same."""
_LOGS_LIMIT = 10  # deaths whose logs are fetched: each costs reads of the store
_SERVE_REPLICA = re.compile(r"SERVE_REPLICA::(?:(?P<app>[^#]*)#)?(?P<deployment>[^#]+)#(?P<replica>[^#]+)")


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
    def who(self) -> str:
        """As people call it: a replica of Serve, an actor by its own name, or a worker."""
        replica = _SERVE_REPLICA.fullmatch(self.name)
        if replica:
            app = f" of application {replica['app']}" if replica["app"] else ""
            return f"Serve replica {replica['replica']} of deployment {replica['deployment']}{app}"
        if self.actor_id:
            return actor_words(self.name, self.class_name, self.actor_id)
        return f"a worker process (pid {self.pid})" if self.pid else "a worker process"

    @property
    def kind(self) -> str:
        """What dies alike: replicas of a deployment, actors of a class, workers of a job."""
        replica = _SERVE_REPLICA.fullmatch(self.name)
        return f"{replica['app']}#{replica['deployment']}" if replica else self.name or self.class_name or self.job_id


def actor_words(name: str, class_name: str, actor_id: str) -> str:
    """An actor by the name that its program gave it, or by its class."""
    own = f"{name} ({class_name})" if name and class_name and name != class_name else name or class_name
    return f"actor {own or actor_id}"


async def read_deaths(context: SessionContext, job_id: str | None) -> tuple[Death, ...]:
    """Those that nobody is known to have asked for, the first first; the first of them with their last words."""
    rows = await context.rows(DEATHS, {"job_id": job_id, "limit": DEATHS_LIMIT})
    deaths = [_death(row) for row in rows]
    with_logs = [replace(one, logs=await _last_logs(context, one)) for one in deaths[:_LOGS_LIMIT]]
    return (*with_logs, *deaths[_LOGS_LIMIT:])


async def _last_logs(context: SessionContext, death: Death) -> tuple[LogSlice, ...]:
    return await worker_logs(context, death.node_id, death.pid) if death.node_id and death.pid else ()


_FIELDS = frozenset(Death.__dataclass_fields__) - {"actor_death", "logs"}


def _death(row: Row) -> Death:
    known = {name: value for name, value in row.items() if name in _FIELDS and value is not None}
    return Death(**known, actor_death=death_context(row["last_death"]))
