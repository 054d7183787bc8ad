"""The states that Ray knows, by Ray itself."""

from __future__ import annotations

import json
import subprocess
from typing import get_args

import pytest

from bed.rayenv import ray_python
from raykeeper.rayevents.states import ACTOR_STATES, ENDED_JOBS, TASK_STATES, JobStatus

PRINTED = """
import json
from ray.core.generated.common_pb2 import TaskStatus
from ray.core.generated.gcs_pb2 import ActorTableData
from ray.job_submission import JobStatus
print(json.dumps({
    "tasks": TaskStatus.keys(),
    "actors": ActorTableData.ActorState.keys(),
    "jobs": [status.value for status in JobStatus],
    "ended": [status.value for status in JobStatus if status.is_terminal()],
}))
"""


@pytest.mark.bed
def test_they_are_those_of_ray_in_its_order() -> None:
    printed = subprocess.run([ray_python(), "-c", PRINTED], capture_output=True, text=True, check=True, timeout=120)
    ray = json.loads(printed.stdout)
    assert list(TASK_STATES) == ray["tasks"]
    assert list(ACTOR_STATES) == ray["actors"]
    assert set(get_args(JobStatus)) == set(ray["jobs"])
    assert set(ENDED_JOBS) == set(ray["ended"])
