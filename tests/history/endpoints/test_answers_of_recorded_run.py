"""Ray is the oracle: a recorded run is asked everything that Ray was asked, and answers what Ray answered.

The run is long over and its cluster gone: it is opened, ingested and closed as any dead session is, and asked through
the whole server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from starlette.types import ASGIApp

from answer_differences import Review, differences, read_reviewed, trace_by_task
from asking import ask
from conditions import eventually
from goldensession import Ingested, Moments
from raycapture import MOMENTS, SESSION, RayCapture, Recorded
from raykeeper.clock import SystemClock
from raykeeper.history.app import make_app
from raykeeper.history.asked import MetricsLinks
from raykeeper.history.catalog import Catalog
from raykeeper.history.database import Database
from raykeeper.history.heartbeats import Heartbeats
from raykeeper.history.ingest.sessions import Sessions, SessionsSettings
from raykeeper.history.logs.logstore import LogStore
from raykeeper.history.pages.dashboard import DashboardFiles
from raykeeper.history.parts import Parts
from raykeeper.history.storeclock import StoreClock

REVIEWED = Path(__file__).parent / "reviewed_differences.yaml"
PREFIX = f"/s/{SESSION.namespace}/{SESSION.cluster}/{SESSION.session}"


async def test_every_answer_equals_rays_but_for_reviewed_differences(
    raycapture: RayCapture, ingested_moments: Moments, tmp_path: Path
) -> None:
    review = Review(read_reviewed(REVIEWED))
    asked_paths = 0
    for moment in MOMENTS:
        async with whole_server(ingested_moments[moment], tmp_path / moment) as app:
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
    links = MetricsLinks(grafana_host="http://10.77.0.1:3000")
    async with whole_server(ingested_moments["final"], tmp_path, links) as app:
        answered = await ask(app, f"{PREFIX}/api/{name}")
    theirs = raycapture.extra(f"{name}_ok")
    assert answered.status == 200
    assert answered.body == {**theirs, "data": {**theirs["data"], **_of_this_session(theirs["data"])}}


@asynccontextmanager
async def whole_server(ingested: Ingested, folder: Path, links: MetricsLinks | None = None) -> AsyncIterator[ASGIApp]:
    """The history server over a store that it sees for the first time, once it has read the session."""
    clock, store = SystemClock(), ingested.store
    sessions = Sessions(store, clock, SessionsSettings(folder))
    database = Database(folder)
    parts = Parts(
        catalog=Catalog(store, clock),
        heartbeats=Heartbeats(store, clock, StoreClock(store, clock)),
        sessions=sessions,
        database=database,
        logs=LogStore(store, clock),
        dashboard=DashboardFiles({}),
        links=links or MetricsLinks(),
    )

    async def is_read() -> bool:
        return (await sessions.open(SESSION)).progress.is_done

    try:
        await eventually(is_read)
        yield make_app(parts)
    finally:
        await sessions.close()
        await database.close()


def _of_this_session(data: dict[str, object]) -> dict[str, str]:
    return {"sessionName": SESSION.session} if "sessionName" in data else {}


def _is_of_files(recorded: Recorded) -> bool:
    """Logs and the frontend's own files are compared where their tests are."""
    path = recorded.path.partition("?")[0]
    return path == "/" or path.startswith("/api/v0/logs") or (path.startswith("/api/jobs/") and path.endswith("/logs"))
