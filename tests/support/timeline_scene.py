"""Tasks made by hand for timelines, each known with its lanes and its times, so that a test can count them itself."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from raykeeper.history.overview.timeline_index import FAILED, FINISHED, RUNNING
from support.ingest_scene import START_NS, Event, base64_id, definition, event, lifecycle, task_id

MS = 1_000_000
STATES = {FINISHED: "FINISHED", FAILED: "FAILED"}


@dataclass(frozen=True)
class Ran:
    """One attempt; times are in nanoseconds after the start of the session."""

    number: int
    begin: int | None
    end: int | None
    """None: nobody saw it end."""
    kind: int = FINISHED
    function: str = "step"
    actor: str = ""
    worker: str = "ab" * 28
    node: str = "cd" * 28
    job: int = 1
    pid: int = 7
    more: tuple[tuple[str, Any], ...] = ()
    """Of its lifecycle."""

    @property
    def id(self) -> str:
        if self.actor:
            return f"{self.number:016x}{self.actor}"
        return task_id(self.number, self.job)

    @property
    def job_id(self) -> str:
        return self.id[-8:]

    @property
    def place(self) -> tuple[int, int | None] | None:
        """Where it is in time; None where it has no place."""
        begin = self.begin if self.begin is not None else self.end
        if begin is None:
            return None
        return START_NS + begin, None if self.end is None else START_NS + max(begin, self.end)

    def events(self) -> Iterator[Event]:
        states = [("PENDING_ARGS_AVAIL", 0)]
        states += [("RUNNING", self.begin)] if self.begin is not None else []
        states += [(STATES[self.kind], self.end)] if self.end is not None else []
        where: dict[str, Any] = {"nodeId": base64_id(self.node) if self.node else "", "workerPid": self.pid}
        where["workerId"] = base64_id(self.worker) if self.worker else ""
        yield self._definition()
        yield lifecycle(self.id, states, **where, **dict(self.more))

    def _definition(self) -> Event:
        if not self.actor:
            return definition(self.id, name=self.function)
        class_, _, method = self.function.rpartition(".")
        function = {"pythonFunctionDescriptor": {"moduleName": "main", "className": class_, "functionName": method}}
        facts = {
            "taskId": base64_id(self.id),
            "taskAttempt": 0,
            "jobId": base64_id(self.job_id),
            "actorId": base64_id(self.actor),
            "actorTaskName": self.function,
            "actorFunc": function,
            "requiredResources": {"CPU": 1.0},
            "parentTaskId": base64_id("ff" * 20 + self.job_id),
        }
        return event("ACTOR_TASK_DEFINITION_EVENT", "actorTaskDefinitionEvent", facts)


def events_of(ran: Iterable[Ran]) -> list[Event]:
    return [one for attempt in ran for one in attempt.events()]


def actor_of(number: int, job: int) -> str:
    return f"{number + 1:024x}{job.to_bytes(4, 'little').hex()}"


def some_tasks(number: int, seed: int = 1) -> list[Ran]:
    """Of two jobs, a few functions, actors, workers and nodes, over a minute; some never began, some never ended."""
    dice = random.Random(seed)
    return [_some_task(dice, one) for one in range(number)]


def _some_task(dice: random.Random, number: int) -> Ran:
    job, worker = dice.choice((1, 1, 2)), dice.randrange(9)
    begin = dice.randrange(60_000) * MS + dice.randrange(MS)
    end = begin + int(dice.choice((0, 1, 50, 3000)) * MS * dice.random())
    kind = dice.choices((FINISHED, FAILED, RUNNING), (20, 3, 1))[0]
    ran = Ran(number, begin, end, kind, job=job, worker=f"{worker + 1:056x}", node=f"{worker % 3 + 1:056x}", pid=worker)
    if dice.random() < 0.3:
        name = dice.choice(("Counter.inc", "Trainer.step", "JobSupervisor.ping"))
        ran = replace(ran, function=name, actor=actor_of(dice.randrange(4) + 4 * len(name), job))
    else:
        ran = replace(ran, function=dice.choice(("load", "parse", "store", "rare" if number % 50 == 0 else "parse")))
    if kind == RUNNING:
        return replace(ran, end=None, begin=dice.choice((begin, None)))
    return replace(ran, begin=None) if kind == FAILED and dice.random() < 0.3 else ran
