"""Ray is the oracle: every recorded request for a log is asked, and the answer is Ray's but for named differences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.types import ASGIApp

from support.asking import Answered, ask
from support.goldenserver import golden_server
from support.goldensession import Moments
from support.raycapture import MOMENTS, SESSION, WORKER, Moment, RayCapture, Recorded

PREFIX = f"/s/{SESSION.namespace}/{SESSION.cluster}/{SESSION.session}"
EMPTY_FOLDERS = {"nsight/", "profiles/", "rocprof_sys/", "old/"}
"""Nothing is stored of a folder without files."""
TROUBLE = "500 Internal Server Error\n\nServer got itself in trouble"
NO_AGENT = f"Agent for node id: {WORKER.node_id} doesn't exist."


def log_requests(capture: RayCapture, moment: Moment) -> Iterator[Recorded]:
    for recorded in capture.requests(moment):
        path = recorded.path.partition("?")[0]
        if path.startswith("/api/v0/logs") or (path.startswith("/api/jobs/") and path.endswith("/logs")):
            yield recorded


@pytest.mark.parametrize("moment", MOMENTS)
async def test_every_log_is_what_ray_answered(
    raycapture: RayCapture, ingested_moments: Moments, moment: Moment
) -> None:
    before = {recorded.path: recorded for recorded in log_requests(raycapture, "final")}
    async with golden_server(ingested_moments[moment]) as app:
        equal = 0
        for recorded in log_requests(raycapture, moment):
            answered = await ask(app, PREFIX + recorded.path, headers=recorded.headers)
            if recorded.name.startswith("logs.list.") and recorded.status == 200:
                assert groups(recorded.body).items() <= groups(answered.body).items(), recorded.name
            elif is_of_a_file_that_grew(recorded):
                assert recorded.body in await whole_file(app, recorded.path), recorded.name
            elif moment == "workerdead" and is_about_the_dead_node(recorded):
                assert is_as_before(answered, before.get(recorded.path)), recorded.name
            elif recorded.name == "logs.file.traversal.node1":
                assert (answered.status, answered.text) == (500, NOT_THERE)
            else:
                assert (answered.status, answered.body) == (recorded.status, recorded.body), recorded.name
                equal += 1
    assert equal >= 132


NOT_THERE = f"A file is not found at: /tmp/ray/{SESSION.session}/metrics/prometheus/prometheus.yml"
"""Ray says whether a file outside of `logs/` exists; we have none, and would not tell."""


def groups(body: dict[str, Any]) -> dict[str, str]:
    """The group of each name. The order of Ray's is that of the file system, and some files came later."""
    listed = body["data"]["result"].items()
    return {name: group for group, names in listed for name in names if name not in EMPTY_FOLDERS}


def is_of_a_file_that_grew(recorded: Recorded) -> bool:
    """The log trees are of the end of the run; these files were still written to when Ray was asked."""
    return recorded.status == 200 and recorded.name.startswith(("logs.file.raylet", "logs.stream"))


async def whole_file(app: ASGIApp, path: str) -> str:
    whole = re.sub(r"lines=\d+", "lines=-1", path.replace("/stream?", "/file?")).replace("&interval=1", "")
    return (await ask(app, PREFIX + whole)).text


def is_about_the_dead_node(recorded: Recorded) -> bool:
    """Ray cannot reach the logs of a node that is gone. They are the reason for a history server."""
    return recorded.body == NO_AGENT or (recorded.body == TROUBLE and recorded.name.endswith(".node0"))


def is_as_before(answered: Answered, before: Recorded | None) -> bool:
    """What Ray answered while the node lived, if it was asked."""
    if before is None or is_of_a_file_that_grew(before):
        return answered.status == 200
    if before.name.startswith("logs.list."):
        return groups(before.body).items() <= groups(answered.body).items()
    return (answered.status, answered.body) == (before.status, before.body)


async def test_actors_and_tasks_win_over_the_node_that_rays_command_adds(
    raycapture: RayCapture, ingested_moments: Moments
) -> None:
    [recorded] = [item for item in log_requests(raycapture, "final") if item.name == "logs.task.ok.FINISHED.0.out"]
    async with golden_server(ingested_moments["final"]) as app:
        answered = await ask(app, f"{PREFIX}{recorded.path}&node_ip=10.77.0.2&media_type=file")
    assert answered.text == recorded.body
