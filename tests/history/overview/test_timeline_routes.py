"""The timeline of a recorded run as it is answered: ranges, brushes and one task, bounded, masked and refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from starlette.types import ASGIApp

from raykeeper.clock import SystemClock
from raykeeper.history.errors import NotFound
from raykeeper.history.http.pages import job_tabs
from raykeeper.history.logs.store import LogStore
from raykeeper.history.overview.job_rows import attempts_of_task
from raykeeper.history.overview.timeline import TimelineQuery
from raykeeper.history.overview.timeline_index import FAILED, GROUPINGS
from raykeeper.history.overview.timeline_tasks import BRUSHED_TASKS, brushed_tasks, task_card
from raykeeper.history.urls import HERE
from support.asking import ask
from support.goldenserver import golden_server
from support.goldensession import Moments
from support.history_scene import PackBuilder, local_store
from support.ingest_scene import SESSION, definition, lifecycle, task_id
from support.overview_scene import asked_about, at
from support.raycapture import SESSION as GOLDEN
from support.timeline_scene import MS, Ran, events_of

API = f"/s/{GOLDEN.namespace}/{GOLDEN.cluster}/{GOLDEN.session}/api/keeper/v1"
TOKEN = "hf_abcdefghijklmnopqrstuvwxyz"


@asynccontextmanager
async def server(moments: Moments) -> AsyncIterator[ASGIApp]:
    async with golden_server(moments["final"]) as app:
        yield app


async def got(app: ASGIApp, path: str, **params: object) -> Any:
    answered = await ask(app, f"{API}/{path}?{urlencode(params)}")
    assert answered.status == 200, answered.text
    return answered.body


async def test_a_jobs_timeline_has_its_tasks_alone(ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        whole = await got(app, "timeline", group="function", limit=100)
        main = await got(app, "jobs/golden-main/timeline", group="function", limit=100)
    assert 0 < main["attempts"] < whole["attempts"]
    assert {lane["id"] for lane in main["lanes"]} <= {lane["id"] for lane in whole["lanes"]}
    assert "sleeper" in [lane["label"] for lane in main["lanes"]]


@pytest.mark.parametrize("group", GROUPINGS)
async def test_every_grouping_holds_the_same_tasks(group: str, ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        view = await got(app, "timeline", group=group, limit=100)
        by_function = await got(app, "timeline", group="function", limit=100)
    assert sum(lane["attempts"] for lane in view["lanes"]) == view["attempts"] == by_function["attempts"]


async def test_rays_own_actors_are_folded_until_somebody_wants_them(ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        folded = await got(app, "timeline", limit=100)
        unfolded = await got(app, "timeline", limit=100, internals="true")
    assert folded["lanes"][-1]["id"] == "internals"
    assert "internals" not in [lane["id"] for lane in unfolded["lanes"]]
    rays = {"TrainController", "TrainStateActor", "_StatsActor", "_AutoscalingCoordinatorActor"}
    assert rays <= {lane["note"] or lane["label"] for lane in unfolded["lanes"]}
    assert not rays & {lane["note"] or lane["label"] for lane in folded["lanes"]}
    assert folded["attempts"] == unfolded["attempts"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("width=5", "width"),
        ("width=100000", "width"),
        ("limit=101", "limit"),
        ("offset=-1", "offset"),
        ("group=colour", "group"),
        ("start=yesterday", "start"),
        ("zoom=3", "zoom"),
        ("start=2026-11-15T20:00:00Z&end=2026-11-15T19:00:00Z", "end"),
    ],
)
async def test_what_is_no_range_is_refused_by_name(query: str, said: str, ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        answered = await ask(app, f"{API}/timeline?{query}")
    assert (answered.status, f"'{said}'" in answered.body["error"]) == (400, True)


async def test_a_range_far_away_is_empty(ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        for year in (1971, 2199):
            view = await got(app, "timeline", start=f"{year}-01-01T00:00:00Z", end=f"{year}-01-02T00:00:00Z")
            assert (view["lanes"], view["attempts"]) == ([], 0)
        ages = await got(app, "timeline", start="1971-01-01T00:00:00Z", end="2099-01-01T00:00:00Z")
    assert ages["outside"] == 0


async def test_a_job_or_task_that_is_not_there_is_said_so(ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        for path in ("jobs/nope/timeline", "jobs/nope/timeline/tasks", "tasks/nope", f"tasks/{'f' * 5000}"):
            answered = await ask(app, f"{API}/{path}")
            assert (answered.status, "no " in answered.body["error"]) == (404, True)


async def test_a_failed_task_is_opened_with_its_error_and_its_own_lines(ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        brushed = await got(app, "jobs/golden-main/timeline/tasks")
        failed = next(task for task in brushed["tasks"] if "boom" in task["error"])
        card = await got(app, f"tasks/{failed['task_id']}", attempt=failed["attempt_number"])
    assert (card["state"], card["name"]) == ("FAILED", "fail_app")
    assert "ValueError: boom" in card["error_message"]
    assert card["resources"]
    assert card["ended_at"]


async def test_a_brush_has_exactly_the_lines_that_its_tasks_wrote(ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        whole = await got(app, "timeline/tasks")
        chatty = [task for task in whole["tasks"] if task["logs"] and all(log["is_own"] for log in task["logs"])]
        for task in chatty[:5]:
            for log in task["logs"]:
                shown = await ask(app, log["href"].removesuffix(HERE))
                assert shown.status == 200
                text = await ask(
                    app,
                    f"{API.removesuffix('/api/keeper/v1')}/api/v0/logs/file?"
                    + urlencode(
                        {
                            "task_id": task["task_id"],
                            "attempt_number": task["attempt_number"],
                            "suffix": log["stream"],
                            "lines": -1,
                        }
                    ),
                )
                assert text.text.splitlines() == list(log["lines"])
    assert chatty


async def test_a_brush_over_some_lanes_has_their_tasks_alone(ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        view = await got(app, "timeline", group="function", limit=100)
        lane = next(lane for lane in view["lanes"] if lane["label"] == "sleeper")
        brushed = await got(app, "timeline/tasks", group="function", lanes=lane["id"])
        none = await got(app, "timeline/tasks", group="function", lanes="nosuchlane")
    assert {task["name"] for task in brushed["tasks"]} == {"sleeper"}
    assert (brushed["total"], brushed["left_out"]) == (lane["attempts"], max(0, lane["attempts"] - BRUSHED_TASKS))
    assert none["total"] == 0


async def test_a_brush_is_bounded_says_what_it_left_out_and_begins_with_what_failed(tmp_path: Path) -> None:
    ran = [Ran(number, number * MS, number * MS + MS) for number in range(BRUSHED_TASKS + 40)]
    ran += [Ran(900, 90 * MS, 95 * MS, FAILED, function="broken")]
    async with asked_about(tmp_path, events_of(ran)) as context:
        brushed = await brushed_tasks(context, TimelineQuery(limit=1000), [])
        part = await brushed_tasks(context, TimelineQuery(at(0.0905), at(0.0925)), [])
    assert (brushed.total, brushed.left_out, brushed.failed) == (BRUSHED_TASKS + 41, 41, 1)
    assert brushed.tasks[0].name == "broken"
    assert [task.task_id for task in part.tasks] == [one.id for one in (ran[-1], *ran[90:93])]
    assert part.without_output == 4


async def test_a_brush_over_the_internals_has_what_ray_did_for_itself(tmp_path: Path) -> None:
    ran = [Ran(1, 0, MS, function="ServeController.run", actor="ab" * 12 + "01000000"), Ran(2, 0, MS)]
    async with asked_about(tmp_path, events_of(ran)) as context:
        brushed = await brushed_tasks(context, TimelineQuery(), ["internals"])
    assert [task.name for task in brushed.tasks] == ["ServeController.run"]


async def test_secrets_in_errors_are_masked_in_cards_and_brushes(tmp_path: Path) -> None:
    error = {"errorType": "TASK_EXECUTION_EXCEPTION", "errorMessage": f"ValueError: {TOKEN} is refused"}
    ran = Ran(1, 0, MS, FAILED, more=(("rayErrorInfo", error),))
    async with asked_about(tmp_path, events_of([ran])) as context:
        card = await task_card(context, ran.id, None)
        brushed = await brushed_tasks(context, TimelineQuery(), [])
        with pytest.raises(NotFound, match="attempt 7"):
            await task_card(context, ran.id, 7)
    assert TOKEN not in f"{card}{brushed}"
    assert "is refused" in (card.error_message or "")
    assert brushed.tasks[0].error.startswith("TASK_EXECUTION_EXCEPTION: ValueError")


async def test_what_a_task_wrote_is_masked_where_it_is_cut(tmp_path: Path) -> None:
    """A line that is longer than a card shows has no beginning in it."""
    secret, rest = "hunter2hunter2", 16 * 1024
    text = f"{'x' * 30_000} password={secret} {'y' * (rest - 8)}".encode()
    store, wrote = local_store(tmp_path / "store"), {"stdoutFile": "w.out", "stdoutStart": "0"}
    packs = PackBuilder(store, session=SESSION, node_id="cd" * 28)
    packs.add("w.out", text)
    await packs.put()
    ran = Ran(1, 0, MS, more=(("taskLogInfo", {**wrote, "stdoutEnd": str(len(text))}),))
    async with asked_about(tmp_path, events_of([ran])) as context:
        with_logs = replace(context, logs=LogStore(store, SystemClock()))
        card = await task_card(with_logs, ran.id, None)
    [log] = card.logs
    [line] = log.lines
    assert line.startswith("<redacted> yyy")


@pytest.mark.parametrize(
    ("said", "known"),
    [
        (f'{{"CPU": {10**400}, "GPU": 2}}', {"GPU": 2.0}),
        (f'{{"memory": -{10**400}}}', {}),
        ('{"CPU": [1], "GPU": {"a": 1}, "memory": "x", "TPU": null}', {}),
        ("[1, 2]", {}),
        ('"x"', {}),
        ("5", {}),
    ],
    ids=["too large", "too small", "no numbers", "a list", "a text", "a number"],
)
async def test_resources_of_any_shape_cost_no_page(tmp_path: Path, said: str, known: dict[str, float]) -> None:
    """Events are what anybody posted."""
    id_ = task_id(1)
    events = [definition(id_, requiredResources=msgspec.Raw(said.encode())), lifecycle(id_, [("FINISHED", MS)])]
    async with asked_about(tmp_path, events) as context:
        assert (await task_card(context, id_, None)).resources == known
        [attempt] = await attempts_of_task(context, id_)
        page = job_tabs._attempt(attempt, context.session.id, "01000000")
    assert attempt.resources == known
    assert ("2 GPU" in page) == bool(known)
