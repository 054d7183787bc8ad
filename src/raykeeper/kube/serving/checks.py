"""Named questions whose answers decide whether a program counts as alive or ready."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from raykeeper.logs import Log

Check = Callable[[], str | None]
"""Tells what is wrong, or None. Looks at what is known already: a check that waited would make the probe wait."""

log = Log("raykeeper.kube.checks")


@dataclass(frozen=True)
class Answer:
    """What one check said."""

    name: str
    problem: str | None


class Checks:
    """The checks behind one endpoint."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}

    def add(self, name: str, check: Check) -> None:
        """Have `check` asked each time; a second one of the same name replaces the first."""
        self._checks[name] = check

    def __contains__(self, name: object) -> bool:
        return name in self._checks

    def ask(self, *names: str) -> list[Answer]:
        """The answers of the named checks, or of all."""
        return [Answer(name, _problem_of(name, self._checks[name])) for name in names or self._checks]


def is_running(task: asyncio.Task[Any]) -> Check:
    """A check that a task meant to run for ever does: one that ended is not missed by anyone else."""

    def check() -> str | None:
        if not task.done():
            return None
        cause = "cancelled" if task.cancelled() else task.exception() or "returned"
        return f"{task.get_name()} has ended: {cause}"

    return check


def report(endpoint: str, answers: Sequence[Answer]) -> str:
    """One line per check and a verdict, as the API server prints its own under `?verbose`."""
    lines = [f"[+]{a.name} ok" if a.problem is None else f"[-]{a.name} failed: {a.problem}" for a in answers]
    verdict = "failed" if any(answer.problem for answer in answers) else "passed"
    return "\n".join([*lines, f"{endpoint} check {verdict}", ""])


def _problem_of(name: str, check: Check) -> str | None:
    try:
        return check()
    except Exception as exc:  # a probe is a loop too, run by the kubelet: what is broken must be named, not hidden
        log.exception("check failed by a bug", check=name)
        return f"{type(exc).__name__}: {exc}"
