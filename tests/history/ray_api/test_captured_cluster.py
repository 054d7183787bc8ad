"""A cluster that was captured without a collector beside it shows the lists its dashboard gave."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from starlette.types import ASGIApp

from raykeeper.collector.capture.pages import KINDS, Page
from raykeeper.history.ingest.session import FixedTables
from raykeeper.layout.records import PolledAnswer
from support.answer_differences import Review, differences, read_reviewed
from support.asking import ask
from support.goldensession import Moments, dashboard, golden_session
from support.raycapture import ASKED_AT, RayCapture

REVIEWED = Path(__file__).parent / "reviewed_differences.yaml"
LISTS = ("state.tasks", "state.actors", "state.nodes", "state.workers", "state.placement_groups", "state.objects")


@pytest.fixture
async def app(raycapture: RayCapture, ingested_moments: Moments) -> AsyncIterator[ASGIApp]:
    """The recorded run without its events, but with the state API's own lists."""
    session = ingested_moments["final"].session
    answers = {recorded.name: recorded for recorded in raycapture.requests("final")}
    captured = {kind: answers.get(f"state.{kind}_detail") for kind in KINDS}
    captured["tasks"] = answers["state.tasks_with_driver"]
    polled = {
        Page(kind).path: PolledAnswer(
            path=Page(kind).path,
            polled_at=ASKED_AT["final"],
            status=200,
            body=msgspec.Raw(msgspec.json.encode(recorded.body)),
        )
        for kind, recorded in captured.items()
        if recorded
    }
    without_events = replace(ingested_moments["final"], session=replace(session, tables=FixedTables({}), polled=polled))
    async with golden_session(without_events) as asked:
        yield dashboard(asked)


async def test_captured_lists_and_summaries_are_rays_own(raycapture: RayCapture, app: ASGIApp) -> None:
    masked_only = [rule for rule in read_reviewed(REVIEWED) if rule.allow == "masked"]
    review = Review(masked_only)
    asked_paths = 0
    for recorded in raycapture.requests("final"):
        is_list = recorded.name.startswith((*LISTS, "cli.list_", "summary.tasks", "summary.actors"))
        if not is_list or recorded.status != 200 or "jobs" in recorded.name or "runtime_envs" in recorded.name:
            continue
        answered = await ask(app, recorded.path)
        rows, ours = (body["data"]["result"]["result"] for body in (recorded.body, answered.body))
        review.look_at(differences(recorded.name, rows, ours))
        asked_paths += 1
    unexplained = [str(difference) for difference in review.unexplained if not difference.path.endswith("/timestamp")]
    assert unexplained == []
    assert asked_paths > 40


async def test_totals_of_a_captured_list_are_those_of_its_rows(app: ASGIApp) -> None:
    result = (await ask(app, "/api/v0/tasks?limit=5")).body["data"]["result"]
    assert (result["total"], result["num_filtered"], len(result["result"])) == (178, 178, 5)


async def test_captured_actors_are_on_the_frontends_pages(raycapture: RayCapture, app: ASGIApp) -> None:
    recorded = {found.name: found.body for found in raycapture.requests("final")}
    theirs = recorded["general.logical_actors"]["data"]["actors"]
    ours = (await ask(app, "/logical/actors")).body["data"]["actors"]
    known = ("className", "state", "name", "pid", "numRestarts", "reprName", "exitDetail", "requiredResources")
    assert {key: [actor[name] for name in known] for key, actor in ours.items()} == {
        key: [actor[name] for name in known] for key, actor in theirs.items()
    }
    one = next(iter(ours))
    assert (await ask(app, f"/logical/actors/{one}")).body["data"]["detail"]["actorId"] == one
