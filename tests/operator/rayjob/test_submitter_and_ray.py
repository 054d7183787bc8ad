"""The submitter's script against a real Ray that asks for a token: what the user wrote runs, once, and is followed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bed.faults import TcpProxy
from bed.ports import free_port
from raykeeper.operator.rayjob.submitter.command import submitter_script
from support.ray_clusters import TOKEN, RayCluster, ray_cluster
from support.rayjob_facts import a_job

SECONDS = 240  # Ray starts a job in five seconds, and much later where other tests use the cores
ODD_ENTRYPOINT = """python -c "import os; print('a  b', os.environ['WHO'], '\\$HOME')" && echo "second  line" """

pytestmark = pytest.mark.bed


@pytest.fixture(scope="module")
def ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    with ray_cluster(tmp_path_factory.mktemp("ray")) as cluster:
        cluster.start_head(free_port())
        yield cluster


def submit(ray: RayCluster, job_id: str, entrypoint: str, runtime_env: str = "") -> subprocess.CompletedProcess[str]:
    """Run the script as the submitter's container does."""
    job = a_job(status={"jobId": job_id}, entrypoint=entrypoint, runtimeEnvYAML=runtime_env)
    path = f"{ray.python.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}
    command = ["/bin/bash", "-ce", "--", submitter_script(job, ray.dashboard)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)


def ran_as_written(log: str) -> bool:
    """Whether what the odd entrypoint prints is there in its order. Ray's own lines may come between: its supervisor
    writes "Running entrypoint ..." to the same file when it closes it, so after the shell has begun to print.
    """
    printed = ["a  b it's me $HOME", "second  line"]
    return [line for line in log.splitlines() if line in printed] == printed


def test_what_the_user_wrote_runs_and_its_output_is_followed(ray: RayCluster) -> None:
    done = submit(ray, "odd", ODD_ENTRYPOINT, runtime_env="env_vars:\n  WHO: it's me\n")
    assert done.returncode == 0, done.stderr
    assert ran_as_written(done.stdout), done.stdout
    assert "Job odd ended: SUCCEEDED" in done.stdout


def test_a_submitter_that_is_started_again_follows_the_job_and_does_not_run_it_twice(
    ray: RayCluster, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    entrypoint = f"echo one >> {runs}; echo ran; exit 3"
    first, second = submit(ray, "again", entrypoint), submit(ray, "again", entrypoint)
    assert (first.returncode, second.returncode) == (0, 0), second.stderr
    assert "ran\n" in second.stdout
    assert "Job again ended: FAILED" in second.stdout
    assert runs.read_text() == "one\n"


def lightly(ray: RayCluster, job_id: str, address: str, *arguments: str) -> subprocess.Popen[str]:
    """The program `submitter`, as its container starts it."""
    program = Path(sys.executable).with_name("submitter")
    variables = {
        "RAY_DASHBOARD_ADDRESS": address,
        "RAY_JOB_SUBMISSION_ID": job_id,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": TOKEN,
    }
    return subprocess.Popen(
        [program, *arguments], env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_the_light_submitter_runs_what_the_user_wrote_and_finds_a_job_it_gave_to_ray_before(ray: RayCluster) -> None:
    arguments = ["--runtime-env-json", '{"env_vars": {"WHO": "it\'s me"}}', "--", ODD_ENTRYPOINT]
    for word in ("was submitted;", "was submitted before;"):
        with lightly(ray, "light", ray.dashboard, *arguments) as running:
            out, err = running.communicate(timeout=SECONDS)
        assert word in out, err
        assert ran_as_written(out), out
        assert out.endswith("Job 'light' ended: SUCCEEDED\n")


def test_a_log_that_is_cut_goes_on_where_it_was(ray: RayCluster) -> None:
    host, _, port = ray.dashboard.removeprefix("http://").partition(":")
    with TcpProxy(host, int(port)) as proxy:
        entrypoint = "for n in $(seq 300); do echo line $n ünï; sleep 0.02; done"
        with lightly(ray, "cut", f"127.0.0.1:{proxy.port}", "--", entrypoint) as running:
            printed = ""
            for line in running.stdout or ():
                printed += line
                if line in ("line 20 ünï\n", "line 150 ünï\n"):
                    proxy.cut()
        assert running.returncode == 0
    lines = [line for line in printed.splitlines() if line.startswith("line")]
    assert lines == [f"line {number} ünï" for number in range(1, 301)]
    assert proxy.accepted > 4, "it was cut"


def test_a_job_that_fails_is_told_and_ends_the_submitter_well(ray: RayCluster) -> None:
    with lightly(ray, "fails", ray.dashboard, "--", "echo oh no; exit 3") as running:
        out, _ = running.communicate(timeout=SECONDS)
    assert (running.returncode, "oh no" in out) == (0, True)
    assert out.endswith("Job 'fails' ended: FAILED\n")
