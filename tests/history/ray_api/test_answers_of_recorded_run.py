"""Ray is the oracle: a recorded run is asked everything that Ray was asked, and answers what Ray answered.

The run is opened, ingested and asked through the whole server.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import time

import pytest
from starlette.types import ASGIApp

from raykeeper.history.settings import GrafanaSettings
from raykeeper.layout.keys import node_record_key
from support.answer_differences import Review, differences, read_reviewed, trace_by_task
from support.asking import ask
from support.goldensession import Ingested, Moments
from support.raycapture import MOMENTS, NODES, SESSION, RayCapture, Recorded
from support.whole_history import whole_server

REVIEWED = Path(__file__).parent / "reviewed_differences.yaml"
PREFIX = f"/s/{SESSION.namespace}/{SESSION.cluster}/{SESSION.session}"


async def test_every_answer_equals_rays_but_for_reviewed_differences(
    raycapture: RayCapture, ingested_moments: Moments, tmp_path: Path
) -> None:
    review = Review(read_reviewed(REVIEWED))
    asked_paths = 0
    for moment in MOMENTS:
        async with recorded_server(ingested_moments[moment], tmp_path / moment) as app:
            for recorded in raycapture.requests(moment):
                if _is_of_files(recorded):
                    continue
                answered = await ask(app, PREFIX + recorded.path, method=recorded.method, headers=recorded.headers)
                theirs, ours = recorded.body, answered.body
                if recorded.name.startswith("timeline"):
                    theirs, ours = trace_by_task(theirs), trace_by_task(ours)
                whole = ({"status": recorded.status, "body": theirs}, {"status": answered.status, "body": ours})
                review.look_at(differences(recorded.name, *whole))
                asked_paths += 1
    assert [str(difference) for difference in review.unexplained] == []
    assert review.unused() == []
    assert asked_paths == 357


@pytest.mark.parametrize("name", ["grafana_health", "prometheus_health"])
async def test_metric_panels_get_the_name_of_the_past_session(
    raycapture: RayCapture, ingested_moments: Moments, tmp_path: Path, name: str
) -> None:
    grafana = GrafanaSettings(host="http://10.77.0.1:3000")
    async with recorded_server(ingested_moments["final"], tmp_path, grafana) as app:
        answered = await ask(app, f"{PREFIX}/api/{name}")
    theirs = raycapture.extra(f"{name}_ok")
    assert answered.status == 200
    assert answered.body == {**theirs, "data": {**theirs["data"], **_of_this_session(theirs["data"])}}


@asynccontextmanager
async def recorded_server(
    ingested: Ingested, folder: Path, grafana: GrafanaSettings | None = None
) -> AsyncIterator[ASGIApp]:
    """The server at a recorded moment: Ray was asked while it ran, so its heartbeats stay fresh through the test."""
    for node in NODES:
        os.utime(ingested.folder / "store" / node_record_key(SESSION, node.node_id), (time() + 3600, time() + 3600))
    async with whole_server(ingested.store, SESSION, folder, grafana=grafana) as app:
        yield app


def _of_this_session(data: dict[str, object]) -> dict[str, str]:
    return {"sessionName": SESSION.session} if "sessionName" in data else {}


def _is_of_files(recorded: Recorded) -> bool:
    """Logs and the frontend's own files are compared where their tests are."""
    path = recorded.path.partition("?")[0]
    return path == "/" or path.startswith("/api/v0/logs") or (path.startswith("/api/jobs/") and path.endswith("/logs"))
