"""A session as the history server tells it: the same questions that Ray's dashboard and command line ask."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from raykeeper.demo.asking import LocalServer
from raykeeper.demo.report import Report, parse_actors, parse_failures, parse_functions, parse_jobs
from raykeeper.errors import Unavailable
from raykeeper.layout.keys import SessionId
from raykeeper.rayevents.states import ENDED_JOBS

AS_OF_HEADER = "X-Raykeeper-As-Of"
MOST_ROWS = "10000"  # Ray's limit for one answer
_FAILED = [("filter_keys", "state"), ("filter_predicates", "="), ("filter_values", "FAILED")]


@dataclass(frozen=True)
class RememberedSession:
    """One session of the store behind the history server."""

    history: LocalServer
    id: SessionId

    @property
    def path(self) -> str:
        return self.id.path

    @property
    def url(self) -> str:
        """Of its dashboard; for `--address` as it is without the slash."""
        return f"{self.history.url}{self.path}/"

    def knows_end_of(self, submission_id: str) -> bool:
        """Whether the end of that job is in the history."""
        try:
            return self._get(f"/api/jobs/{submission_id}")["status"] in ENDED_JOBS
        except Unavailable:
            return False  # nothing of the session or the job has arrived yet

    def knows_events_until(self, moment: datetime | None) -> bool:
        """Whether events that were sealed at that moment are in the history; None stands for no events at all."""
        try:
            said = self.history.header(f"{self.path}/api/v0/nodes", AS_OF_HEADER)
        except Unavailable:
            return False
        return moment is None or datetime.fromisoformat(said) >= moment

    def report(self) -> Report:
        """What ran and failed. Raises Unavailable."""
        failures, more = parse_failures(self._list("tasks", [("detail", "1"), ("limit", MOST_ROWS), *_FAILED]))
        return Report(
            functions=parse_functions(self._get("/api/v0/tasks/summarize")),
            failures=failures,
            more_failures=more,
            actors=parse_actors(self._list("actors", [("detail", "1"), ("limit", MOST_ROWS)])),
            jobs=parse_jobs(self._get("/api/jobs/")),
        )

    def _list(self, what: str, query: list[tuple[str, str]] | None = None) -> Any:
        return self._get(f"/api/v0/{what}", query)

    def _get(self, path: str, query: list[tuple[str, str]] | None = None) -> Any:
        return self.history.get(self.path + path, query)
