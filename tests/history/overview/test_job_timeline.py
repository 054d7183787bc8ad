"""One job's timeline: tasks, actors, nodes and Kubernetes events over one stretch of time."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from raykeeper.history.overview.job import job_overview
from raykeeper.history.overview.lanes import FEW, FUNCTION_LANES, KUBE_LANES, NOT_RECORDED, died_unasked, kube_lanes
from raykeeper.history.overview.model import Lane, Timeline
from raykeeper.history.report.make import JobUnknown
from raykeeper.history.store.kube_facts import KubeFacts
from raykeeper.layout.kube_facts import ContainerFact, EventFact, PodFact
from support.goldensession import Moments, golden_session
from support.ingest_scene import Event, base64_id, definition, lifecycle, task_id
from support.overview_scene import SECOND, actor_events, asked_about, at, method_events
from support.report_scene import NODE, a_job, node_died

A_MINUTE = a_job(start_time=int(at(0).timestamp() * 1000), end_time=int(at(60).timestamp() * 1000))
"""A job that took so long."""


def lanes_of(timeline: Timeline, group: str) -> list[Lane]:
    return [lane for lane in timeline.lanes if lane.group == group]


def ran(
    number: int, begin: int, end: int, *, name: str = "step", state: str = "FINISHED", node: str = ""
) -> list[Event]:
    task = task_id(number)
    states = [("PENDING_ARGS_AVAIL", 0), ("RUNNING", begin * SECOND), (state, end * SECOND)]
    return [definition(task, name=name), lifecycle(task, states, nodeId=base64_id(node) if node else "")]


async def test_few_tasks_are_shown_one_by_one(tmp_path: Path) -> None:
    events = [*ran(1, 5, 20), *ran(2, 10, 30, state="FAILED"), *ran(3, 0, 60, name="long")]
    async with asked_about(tmp_path, events, jobs=[A_MINUTE]) as asked:
        timeline = (await job_overview(asked, "nightly")).timeline
    long, step = lanes_of(timeline, "tasks")
    assert [(span.begin, span.end, span.kind) for span in step.spans] == [
        (at(5), at(20), "running"),
        (at(10), at(30), "failed"),
    ]
    assert (long.label, len(long.spans), step.note) == ("long", 1, "2 attempts, 1 failed")
    assert (timeline.begin, timeline.end) == (at(0), at(60))


async def test_functions_that_failed_are_among_the_lanes_however_short_they_ran(tmp_path: Path) -> None:
    events = [one for number in range(FUNCTION_LANES + 3) for one in ran(number, 0, 40, name=f"busy_{number:02}")]
    events += ran(90, 5, 6, name="broken", state="FAILED")
    async with asked_about(tmp_path, events, jobs=[A_MINUTE]) as asked:
        timeline = (await job_overview(asked, "nightly")).timeline
    labels = [lane.label for lane in lanes_of(timeline, "tasks")]
    assert labels == [*(f"busy_{number:02}" for number in range(FUNCTION_LANES - 1)), "broken"]
    assert timeline.left_out["tasks"] == 4


async def test_many_tasks_become_levels_and_their_failures_marks(tmp_path: Path) -> None:
    events = [one for number in range(FEW) for one in ran(number, 0, 30)]
    events += [one for number in range(FEW, FEW + 5) for one in ran(number, 30, 45, state="FAILED")]
    async with asked_about(tmp_path, events, jobs=[A_MINUTE]) as asked:
        [lane] = lanes_of((await job_overview(asked, "nightly")).timeline, "tasks")
    assert lane.spans == ()
    levels = {second: lane.levels[int(second / 60 * len(lane.levels))] for second in (1, 20, 40, 55)}
    assert levels == {1: FEW, 20: FEW, 40: 5, 55: 0}
    [mark] = lane.marks
    assert (mark.kind, mark.title.startswith("5 failed")) == ("failed", True)
    assert abs((mark.at - at(45)).total_seconds()) < 1


async def test_only_the_busiest_functions_have_lanes_and_the_rest_is_counted(tmp_path: Path) -> None:
    events = [one for number in range(FUNCTION_LANES + 4) for one in ran(number, 0, 10 + number, name=f"f{number}")]
    async with asked_about(tmp_path, events, jobs=[A_MINUTE]) as asked:
        timeline = (await job_overview(asked, "nightly")).timeline
    assert len(lanes_of(timeline, "tasks")) == FUNCTION_LANES
    assert lanes_of(timeline, "tasks")[0].label == f"f{FUNCTION_LANES + 3}"
    assert timeline.left_out["tasks"] == 4


async def test_an_actor_is_alive_between_its_restarts(tmp_path: Path) -> None:
    states = [("ALIVE", 5), ("RESTARTING", 20), ("ALIVE", 25), ("DEAD", 50)]
    events = actor_events([(state, second * SECOND) for state, second in states])
    events += method_events([("RUNNING", 6 * SECOND), ("FINISHED", 7 * SECOND)])
    async with asked_about(tmp_path, events, jobs=[A_MINUTE]) as asked:
        [lane] = lanes_of((await job_overview(asked, "nightly")).timeline, "actors")
    assert [(span.begin, span.end) for span in lane.spans] == [(at(5), at(20)), (at(25), at(50))]
    assert [(mark.at, mark.kind) for mark in lane.marks] == [(at(20), "warning"), (at(50), "normal")]


async def test_an_actor_that_ray_tells_of_again_when_its_job_ends_died_once(tmp_path: Path) -> None:
    events = actor_events([(state, second * SECOND) for state, second in (("ALIVE", 5), ("DEAD", 20), ("DEAD", 59))])
    async with asked_about(tmp_path, events, jobs=[A_MINUTE]) as asked:
        [lane] = lanes_of((await job_overview(asked, "nightly")).timeline, "actors")
    assert [mark.at for mark in lane.marks] == [at(20)]


@pytest.mark.parametrize(("worker", "said"), [("", "failed before it began"), ("ab" * 28, "its start is not recorded")])
async def test_what_a_dead_worker_had_been_given_may_have_begun(worker: str, said: str, tmp_path: Path) -> None:
    states = [("PENDING_NODE_ASSIGNMENT", SECOND), ("FAILED", 20 * SECOND)]
    error = {"errorType": "ACTOR_DIED", "errorMessage": "it is gone"}
    sent = base64_id(worker) if worker else ""
    events = [definition(task_id(1)), lifecycle(task_id(1), states, rayErrorInfo=error, workerId=sent)]
    async with asked_about(tmp_path, events, jobs=[A_MINUTE]) as asked:
        [lane] = lanes_of((await job_overview(asked, "nightly")).timeline, "tasks")
    assert [said in mark.title for mark in lane.marks] == [True]


async def test_a_task_that_ran_for_a_moment_is_one_at_a_time(tmp_path: Path) -> None:
    events = [one for number in range(FEW) for one in ran(number, 0, 30)]
    states = [("PENDING_ARGS_AVAIL", 0), ("RUNNING", 5 * SECOND), ("FINISHED", 5 * SECOND + SECOND // 20)]
    events += [definition(task_id(900), name="short"), lifecycle(task_id(900), states)]
    async with asked_about(tmp_path, events, jobs=[A_MINUTE]) as asked:
        lanes = lanes_of((await job_overview(asked, "nightly")).timeline, "tasks")
    assert [lane.note for lane in lanes if lane.label == "short"] == ["1 attempt, up to about 1 at a time"]


async def test_a_node_that_was_lost_is_marked(tmp_path: Path) -> None:
    events = [*ran(1, 5, 20, node=NODE), *node_died("UNEXPECTED_TERMINATION", "health check failed", 40)]
    async with asked_about(tmp_path, events, jobs=[A_MINUTE]) as asked:
        [lane] = lanes_of((await job_overview(asked, "nightly")).timeline, "nodes")
    assert lane.note == "1 attempt"
    assert [(mark.at, mark.kind) for mark in lane.marks] == [(at(40), "failed")]
    assert "health check failed" in lane.marks[0].title


async def test_kubernetes_events_stand_on_the_same_axis(tmp_path: Path) -> None:
    async with asked_about(tmp_path, ran(1, 5, 20), jobs=[A_MINUTE], kube=said_by_kubernetes()) as asked:
        timeline = (await job_overview(asked, "nightly")).timeline
    [pod, cluster] = lanes_of(timeline, "kubernetes")
    assert (pod.label, cluster.label) == ("Pod worker-a", "RayCluster small")
    assert [mark.title for mark in pod.marks] == [
        "BackOff (3 times): restarting failed container with HF_TOKEN=<redacted>",
        "ray-worker ended with code 137: OOMKilled",
        "the pod is gone",
    ]
    assert [mark.kind for mark in pod.marks] == ["warning", "warning", "normal"]
    assert timeline.kubernetes == ""


def said_by_kubernetes() -> KubeFacts:
    oom = ContainerFact(
        name="ray-worker", state="running", last_reason="OOMKilled", last_exit_code=137, last_finished_at=at(31)
    )
    secret = "restarting failed container with HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz"
    back_off = EventFact(
        at=at(30),
        uid="e1",
        type="Warning",
        reason="BackOff",
        message=secret,
        count=3,
        about_kind="Pod",
        about_name="worker-a",
    )
    created = EventFact(
        at=at(1), uid="e2", type="Normal", reason="Created", about_kind="RayCluster", about_name="small"
    )
    late = EventFact(at=at(600), uid="e3", type="Warning", reason="Late", about_kind="Pod", about_name="worker-b")
    running = PodFact(at=at(32), uid="p", name="worker-a", phase="Running", containers=(oom,))
    pods = (running, msgspec.structs.replace(running, at=at(40), deleted=True))
    return KubeFacts(pods=pods, events=(created, back_off, late))


async def test_a_cluster_nobody_observed_says_so(tmp_path: Path) -> None:
    async with asked_about(tmp_path, ran(1, 5, 20), jobs=[A_MINUTE]) as asked:
        timeline = (await job_overview(asked, "nightly")).timeline
    assert (lanes_of(timeline, "kubernetes"), timeline.kubernetes) == ([], NOT_RECORDED)


def test_warnings_stay_where_kubernetes_says_too_much() -> None:
    chatter = tuple(
        EventFact(at=at(number), uid=f"n{number}", reason="Pulled", about_kind="Pod", about_name=f"p{number}")
        for number in range(40)
    )
    warning = EventFact(at=at(50), uid="w", type="Warning", reason="Evicted", about_kind="Pod", about_name="last")
    shown, more = kube_lanes(KubeFacts(events=(*chatter, warning)), at(0), at(60))
    assert (shown[0].label, len(shown), more) == ("Pod last", KUBE_LANES, 41 - KUBE_LANES)


async def test_the_recorded_job_has_all_kinds_of_lanes(ingested_moments: Moments) -> None:
    async with golden_session(ingested_moments["final"]) as asked:
        overview = await job_overview(asked, "golden-main")
    assert (overview.job.job_id, overview.counts.attempts, overview.counts.failed) == (
        "02000000",
        112,
        13,
    )  # and six questions for datasets
    assert overview.runtime_env["env_vars"]["DB_PASSWORD"] == "<redacted>"
    groups = {lane.group for lane in overview.timeline.lanes}
    assert groups == {"tasks", "actors", "nodes"}
    marks = sum(len(lane.marks) + len(lane.spans) for lane in overview.timeline.lanes)
    assert 20 < marks < 400


async def test_a_job_that_never_had_a_driver_has_an_empty_time_line(ingested_moments: Moments) -> None:
    async with golden_session(ingested_moments["final"]) as asked:
        overview = await job_overview(asked, "golden-badenv")
        with pytest.raises(JobUnknown):
            await job_overview(asked, "nope")
    assert (overview.timeline.lanes, overview.counts.attempts, overview.job.status) == ((), 0, "FAILED")


@pytest.mark.parametrize(
    ("cause", "is_failure"),
    [
        ({"actorDiedErrorContext": {"reason": "WORKER_DIED", "errorMessage": "exit type: SYSTEM_ERROR"}}, True),
        ({"actorDiedErrorContext": {"reason": "WORKER_DIED", "errorMessage": "exit type: INTENDED_USER_EXIT"}}, False),
        ({"actorDiedErrorContext": {"reason": "RAY_KILL", "errorMessage": "killed by `ray.kill`"}}, False),
        ({"actorDiedErrorContext": {"reason": "OUT_OF_SCOPE"}}, False),
        ({"creationTaskFailureContext": {"formattedExceptionString": "boom"}}, True),
        ({}, False),
    ],
    ids=["crashed", "exited", "killed", "out-of-scope", "constructor", "unknown"],
)
def test_only_deaths_that_nobody_asked_for_are_failures(cause: dict[str, object], is_failure: bool) -> None:
    assert died_unasked(cause) is is_failure
