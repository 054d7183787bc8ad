"""What the recorded run has none of: events as other programs and other versions of Ray cause them, and the answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from support.asking import ask
from support.ingest_scene import (
    HEAD,
    SESSION,
    START_NS,
    Event,
    base64_id,
    definition,
    event,
    job_lifecycle,
    lifecycle,
    local_store,
    put_records,
    put_segment,
    task_id,
    timestamp,
)
from support.whole_history import whole_server

ACTOR = "ac" * 12 + "01000000"
START_MS = START_NS // 1_000_000
SECOND = 1_000_000_000
PREFIX = f"/s/{SESSION.namespace}/{SESSION.cluster}/{SESSION.session}"


@asynccontextmanager
async def answering(folder: Path, events: Iterable[Event]) -> AsyncIterator[ASGIApp]:
    """The server over a running session of these events."""
    store = local_store(folder / "store")
    await put_records(store, datetime.now(UTC), is_ended=False)
    await put_segment(store, 1, events)
    async with whole_server(store, SESSION, folder / "cache") as app:
        yield app


async def rows(app: ASGIApp, path: str) -> list[dict[str, Any]]:
    answered = await ask(app, f"{PREFIX}/api/v0/{path}")
    assert answered.status == 200, answered.text
    found: list[dict[str, Any]] = answered.body["data"]["result"]["result"]
    return found


async def logical(app: ASGIApp, actor: str = ACTOR) -> dict[str, Any]:
    answered = await ask(app, f"{PREFIX}/logical/actors/{actor}")
    detail: dict[str, Any] = answered.body["data"]["detail"]
    return detail


def actor_definition(actor: str = ACTOR, **more: Any) -> Event:
    body = {"actorId": base64_id(actor), "jobId": base64_id(actor[-8:]), "className": "Counter", **more}
    return event("ACTOR_DEFINITION_EVENT", "actorDefinitionEvent", body)


def actor_lifecycle(*states: tuple[str, int], **more: Any) -> Event:
    """States with their seconds after the start."""
    transitions = [{"state": state, "timestamp": timestamp(START_NS + at * SECOND), **more} for state, at in states]
    body = {"actorId": base64_id(ACTOR), "stateTransitions": transitions}
    return event("ACTOR_LIFECYCLE_EVENT", "actorLifecycleEvent", body)


# --- actors


async def test_an_actor_that_is_told_dead_again_died_the_first_time(tmp_path: Path) -> None:
    """Ray tells of a dead actor once more when its job ends."""
    events = [actor_definition(), actor_lifecycle(("ALIVE", 1), ("DEAD", 2)), actor_lifecycle(("DEAD", 30))]
    async with answering(tmp_path, events) as app:
        actor = await logical(app)
    assert (actor["startTime"], actor["endTime"], actor["timestamp"]) == (
        START_MS + 1000,
        START_MS + 2000,
        START_MS + 30_000,
    )


async def test_an_actor_that_was_dead_and_came_again_died_the_last_time(tmp_path: Path) -> None:
    states = [("ALIVE", 1), ("DEAD", 2), ("RESTARTING", 3), ("ALIVE", 4), ("DEAD", 5)]
    async with answering(tmp_path, [actor_definition(), actor_lifecycle(*states)]) as app:
        actor = await logical(app)
    assert (actor["startTime"], actor["endTime"], actor["numRestarts"]) == (START_MS + 1000, START_MS + 5000, "1")


async def test_an_actor_is_dated_by_its_last_life_or_death(tmp_path: Path) -> None:
    states = [("PENDING_CREATION", 1), ("ALIVE", 2), ("RESTARTING", 3)]
    async with answering(tmp_path, [actor_definition(), actor_lifecycle(*states)]) as app:
        actor = await logical(app)
    assert (actor["state"], actor["timestamp"]) == ("RESTARTING", START_MS + 2000)


async def test_an_actor_that_never_came_to_be_is_not_dated(tmp_path: Path) -> None:
    states = [("DEPENDENCIES_UNREADY", 1), ("PENDING_CREATION", 2)]
    async with answering(tmp_path, [actor_definition(), actor_lifecycle(*states)]) as app:
        actor = await logical(app)
    assert (actor["state"], actor["timestamp"], actor["startTime"]) == ("PENDING_CREATION", 0, 0)


# --- where else a task may run

FALLBACK = {
    "options": [
        {
            "labelSelector": {
                "labelConstraints": [
                    {"labelKey": "my_zone", "operator": "LABEL_OPERATOR_NOT_IN", "labelValues": ["a_b"]}
                ]
            }
        }
    ]
}
FALLBACK_IN_STATE_API = {
    "options": [
        {
            "label_selector": {
                "label_constraints": [
                    {"label_key": "my_zone", "operator": "LABEL_OPERATOR_NOT_IN", "label_values": ["a_b"]}
                ]
            }
        }
    ]
}


async def test_a_fallback_strategy_is_in_the_names_of_each_api(tmp_path: Path) -> None:
    maker = definition("f" * 16 + ACTOR, taskType="ACTOR_CREATION_TASK", fallbackStrategy=FALLBACK)
    other = "ad" * 12 + "01000000"
    events = [maker, definition(task_id(1)), actor_definition(), actor_definition(other), actor_lifecycle(("ALIVE", 1))]
    async with answering(tmp_path, events) as app:
        tasks = await rows(app, "tasks?detail=1")
        actors = await rows(app, "actors?detail=1")
        shown = [await logical(app), await logical(app, other)]
        [of_node] = (await ask(app, f"{PREFIX}/logical/actors?ids={ACTOR}")).body["data"]["actors"].values()
    assert [task["fallback_strategy"] for task in tasks] == [{"options": []}, FALLBACK_IN_STATE_API]
    assert [actor["fallback_strategy"] for actor in actors] == [FALLBACK_IN_STATE_API, None]
    assert [actor.get("fallbackStrategy") for actor in shown] == [FALLBACK, None]
    assert of_node["fallbackStrategy"] == FALLBACK


# --- tasks


async def test_an_error_is_shown_of_failed_tasks_alone(tmp_path: Path) -> None:
    """Ray's last state in order is not always the last in time."""
    error = {"errorType": "WORKER_DIED", "errorMessage": "gone"}
    states = [("FAILED", 2), ("GETTING_AND_PINNING_ARGS", 1)]
    events = [definition(task_id(1)), lifecycle(task_id(1), states, rayErrorInfo=error)]
    async with answering(tmp_path, events) as app:
        [task] = await rows(app, "tasks?detail=1")
    assert (task["state"], task["error_type"], task["error_message"]) == ("GETTING_AND_PINNING_ARGS", None, None)


# --- drivers


async def test_nothing_is_said_of_how_a_driver_ended_that_nobody_saw(tmp_path: Path) -> None:
    body = {"jobId": base64_id("01000000"), "driverPid": "9", "driverNodeId": base64_id(HEAD)}
    events = [
        event("DRIVER_JOB_DEFINITION_EVENT", "driverJobDefinitionEvent", body),
        job_lifecycle("01000000", "CREATED", 1),
        job_lifecycle("01000000", "FINISHED", 2),
    ]
    async with answering(tmp_path, events) as app:
        [driver] = await rows(app, "workers?detail=1")
    assert (driver["is_alive"], driver["exit_type"], driver["exit_detail"]) == (False, None, None)
