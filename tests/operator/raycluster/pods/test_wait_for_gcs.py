"""The wait for the head, run by a real shell with a stand-in for the `ray` command."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rayclusters.manifests import a_cluster
from rayclusters.ray_pods import named, worker_pod

ADDRESS = "rc-head-svc.default.svc.cluster.local:6379"
# Fails FAILURES times, saying why, then succeeds.
RAY = """#!/bin/bash
echo "$@" >> calls
(( $(wc -l < calls) > FAILURES )) || { echo "connection refused" >&2; exit 1; }
"""
NO_SLEEP = "sleep() { :; }\n"


def wait(folder: Path, *, failures: int, age: int) -> list[str]:
    """What the container prints when the check fails that often and it has run for `age` seconds already."""
    ray = folder / "ray"
    ray.write_text(RAY.replace("FAILURES", str(failures)))
    ray.chmod(0o755)
    container = named(worker_pod(a_cluster()), "wait-gcs-ready")
    answer = subprocess.run(
        [*container["command"], f"SECONDS={age}\n{NO_SLEEP}{container['args'][0]}"],
        cwd=folder,
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert (folder / "calls").read_text().splitlines() == [f"health-check --address {ADDRESS}"] * (failures + 1)
    return (answer.stdout + answer.stderr).splitlines()


def test_a_head_that_is_ready_is_not_waited_for(tmp_path: Path) -> None:
    [line] = wait(tmp_path, failures=0, age=0)
    assert line.endswith(f"the GCS at {ADDRESS} is ready")


@pytest.mark.parametrize(("age", "shown"), [(0, 0), (500, 2)])
def test_errors_are_shown_only_once_the_wait_is_long(tmp_path: Path, age: int, shown: int) -> None:
    said = wait(tmp_path, failures=3, age=age)
    assert said.count("connection refused") == shown
    assert sum("is not ready" in line for line in said) == 3
    assert said[-1].endswith("is ready")
