"""What a Ray cluster's own dashboard says at last, to be compared with its history."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from e2e.collected_scene import JOB, CollectedScene
from e2e.history_process import History, SessionHistory
from raykeeper.api.meta import JSON
from raykeeper.layout.keys import SessionId

PROGRAM = """
import ray, time
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
ray.init()
nodes = [node['NodeID'] for node in ray.nodes() if node['Alive'] and node['Resources'].get('CPU')]

@ray.remote(num_cpus=1, max_retries=0)
def work(number):
    print('working on', number)
    if number % 5 == 0:
        raise ValueError(f'cannot do {number}')
    return number

def started(number):  # in turn: a node without a task has no events to tell
    place = NodeAffinitySchedulingStrategy(nodes[number % len(nodes)], soft=False)
    return work.options(scheduling_strategy=place).remote(number)

failed = 0
for reference in [started(number) for number in range(20)]:
    try:
        ray.get(reference)
    except ValueError:
        failed += 1
time.sleep(2)  # workers end with their job, and tell once a second what they did
raise SystemExit(f'{failed} tasks failed')
"""
ALL_TASKS = {"detail": "1", "limit": "10000"}
FACTS = (
    "name",
    "state",
    "job_id",
    "node_id",
    "worker_id",
    "error_type",
    "error_message",
    "start_time_ms",
    "end_time_ms",
)
"""What must be told of a task after its cluster as before."""


@dataclass(frozen=True)
class Witness:
    """What a cluster's own dashboard said at last, and what its collectors had promised to keep."""

    session: SessionId
    job: JSON
    job_log: str
    tasks: dict[str, Any]
    acknowledged: dict[str, int]
    uid: str


async def witness(scene: CollectedScene) -> Witness:
    """Run the job, and listen until everything about it is told."""
    await scene.submit(f"python -c {shlex.quote(PROGRAM)}")
    job = await scene.finished()
    acknowledged = await scene.acknowledged_events()
    return Witness(
        session=SessionId(scene.namespace, scene.key.name, (await scene.ask("/api/version"))["session_name"]),
        job=job,
        job_log=(await scene.ask(f"/api/jobs/{JOB}/logs"))["logs"],
        tasks=task_facts(await scene.ask("/api/v0/tasks", **ALL_TASKS)),
        acknowledged=acknowledged,
        uid=(await scene.cluster())["metadata"]["uid"],
    )


def task_facts(answer: Any) -> dict[str, Any]:
    tasks = answer["data"]["result"]["result"]
    return {task["task_id"]: {name: task[name] for name in FACTS} for task in tasks}


def assert_all_is_there(history: History, told: Witness) -> None:
    now = history.of(told.session)
    assert task_facts(now.ask("/api/v0/tasks", **ALL_TASKS)) == told.tasks
    failed = [task for task in told.tasks.values() if task["state"] == "FAILED"]
    assert (len(told.tasks), len(failed)) == (20, 4)
    assert now.ask(f"/api/jobs/{JOB}") == told.job
    assert told.job["status"] == "FAILED"
    assert now.ask(f"/api/jobs/{JOB}/logs")["logs"] == told.job_log
    assert "4 tasks failed" in told.job_log
    _assert_logs_of_tasks(now, told)


def _assert_logs_of_tasks(now: SessionHistory, told: Witness) -> None:
    """The output of each task is the line that it printed."""
    for task in told.tasks:
        assert b"working on" in now.text("/api/v0/logs/file", task_id=task), task
