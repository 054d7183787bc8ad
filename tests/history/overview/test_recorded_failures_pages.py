"""Real failures, recorded once: each job's page shows why, and on its timeline what Kubernetes had to do with it."""

from __future__ import annotations

import pytest

from raykeeper.history.commands.subjects import opened_whole
from raykeeper.history.http.keeper_api.overview import overview_of_job
from raykeeper.history.overview.lanes import NOT_RECORDED
from support.recorded_failures import RecordedFailures

JOB = "nightly"


async def marks_of(failures: RecordedFailures, name: str) -> tuple[str, str]:
    """Events on the timeline of Kubernetes, and why nothing is."""
    async with failures.served() as history:
        overview = await overview_of_job(await opened_whole(history, failures.sessions[name]), JOB)
    lanes = [lane for lane in overview.timeline.lanes if lane.group == "kubernetes"]
    return "\n".join(mark.title for lane in lanes for mark in lane.marks), overview.timeline.kubernetes


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("container-oom-killed", "OOMKilled"),
        ("pod-lost", "Killing: Stopping container"),
    ],
)
async def test_what_kubernetes_did_is_on_the_time_line(
    name: str, said: str, recorded_failures: RecordedFailures
) -> None:
    marks, why_none = await marks_of(recorded_failures, name)
    assert said in marks
    assert why_none == ""


async def test_a_cluster_outside_kubernetes_says_that_nobody_recorded_it(recorded_failures: RecordedFailures) -> None:
    assert await marks_of(recorded_failures, "one-of-many") == ("", NOT_RECORDED)
