"""What is the user's, and so looked at every few seconds, and what is Ray's own."""

from __future__ import annotations

import pytest

from raykeeper.collector.logs.kinds import Kind, kind_of


@pytest.mark.parametrize(
    "path",
    [
        f"worker-{'a' * 56}-01000000-7.out",
        f"worker-{'a' * 56}-01000000-7.err.2",
        "job-driver-raysubmit_1.log",
        "runtime_env_setup-01000000.log",
        "events/event_JOBS.log",
        "serve/replica_app_dep_1.log",
        "train/run.log",
        "ray-data/ray-data.log",
    ],
)
def test_what_tells_of_users_programs_is_theirs(path: str) -> None:
    assert kind_of(path) is Kind.USER


@pytest.mark.parametrize(
    "path", ["raylet.out", "events/event_GCS.log", "jobs/supervisor-a.log", "python-core-worker-a_7.log", "serve"]
)
def test_what_ray_tells_of_itself_is_rays(path: str) -> None:
    assert kind_of(path) is Kind.COMPONENT
