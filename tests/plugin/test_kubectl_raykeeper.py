"""`kubectl raykeeper` as people call it, against a real API server and a real history server."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
import tarfile
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest
from aiohttp import web

from bed.binaries import binary
from bed.control_plane import ControlPlane
from raykeeper.cli.kubectl import run_command
from support.head_scenarios import own_address
from support.recorded_failures import RecordedFailures
from support.scripted_server import served
from support.serving_history import serving
from support.sick_objects import put_job, put_sick_cluster
from support.whole_history import built_server

SECRET = "hunter2-very-secret"


@dataclass(frozen=True)
class Shown:
    """What a command printed, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


def run(plane: ControlPlane, *arguments: str) -> Shown:
    """The command in this process: starting one costs a second each time."""
    output, errors = io.TextIOWrapper(io.BytesIO(), write_through=True), io.StringIO()
    variables = {"KUBECONFIG": str(plane.admin_kubeconfig), "RAYKEEPER_HISTORY_URL": ""}
    with mock.patch.dict(os.environ, variables), redirect_stdout(output), redirect_stderr(errors):
        code = run_command(arguments)
    output.seek(0)
    return Shown(code, output.read(), errors.getvalue())


def _text(tar: tarfile.TarFile, name: str) -> str:
    file = tar.extractfile(name)
    assert file is not None
    return file.read().decode()


@pytest.fixture
def sick(ray_crds: ControlPlane, namespace: str) -> str:
    """A namespace with a cluster whose worker cannot have its image."""
    variables = [{"name": "ANY", "value": SECRET}]
    put_sick_cluster(ray_crds, namespace, variables, f"cannot pull, token={SECRET}")
    return namespace


def test_status_says_on_one_screen_what_a_cluster_waits_for(ray_crds: ControlPlane, sick: str) -> None:
    shown = run(ray_crds, "status", "raycluster/demo", "-n", sick)
    assert shown.returncode == 1, shown.stderr
    for part in (
        f"RayCluster {sick}/demo: waiting",
        "0 of 1 workers are ready",
        "not everything that should be there works: 1 of 1 workers not ready",
        "ray waits: ImagePullBackOff: no such tag",
        "Pod/demo-worker  Failed: cannot pull",
    ):
        assert part in shown.stdout
    assert SECRET not in shown.stdout
    assert "\x1b" not in shown.stdout
    assert len(shown.stdout.splitlines()) < 40


def test_status_is_json_for_programs_and_finds_a_bare_name(ray_crds: ControlPlane, sick: str) -> None:
    shown = run(ray_crds, "status", "demo", "-n", sick, "-o", "json")
    answer = json.loads(shown.stdout)
    assert (answer["kind"], answer["health"], shown.returncode) == ("RayCluster", "waiting", 1)
    assert SECRET not in shown.stdout


def test_a_healthy_job_is_exit_code_0_and_a_missing_one_3(ray_crds: ControlPlane, namespace: str) -> None:
    put_job(ray_crds, namespace, "fine", {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"})
    assert run(ray_crds, "status", "job", "fine", "-n", namespace).returncode == 0
    missing = run(ray_crds, "status", "job/nope", "-n", namespace)
    assert (missing.returncode, "gone" in missing.stdout) == (3, True)


def test_a_name_that_two_objects_have_must_be_told_apart(ray_crds: ControlPlane, sick: str) -> None:
    put_job(ray_crds, sick, "demo", {})
    shown = run(ray_crds, "status", "demo", "-n", sick)
    assert shown.returncode == 2
    assert "rayjob/demo and raycluster/demo" in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("status", "pod/x"), "is no kind of Ray"),
        (("status", "a", "b", "c"), "say what you mean"),
        (("status", "x", "--kubeconfig", "/nowhere"), "there is no such file"),
        (("why", "job/x", "--history", "ftp://x"), "it must begin with http"),
        (("why", "job/x", "--history-token-file", "/nowhere"), "--history-token-file"),
    ],
)
def test_what_cannot_be_asked_is_one_line_and_exit_code_2(
    ray_crds: ControlPlane, arguments: tuple[str, ...], said: str
) -> None:
    shown = run(ray_crds, *arguments)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert said in shown.stderr
    assert len(shown.stderr.splitlines()) == 1


def test_why_falls_back_to_what_kubernetes_says(ray_crds: ControlPlane, sick: str) -> None:
    shown = run(ray_crds, "why", "raycluster/demo", "-n", sick)
    assert shown.returncode == 1
    assert "ImagePullBackOff" in shown.stdout
    assert "no history server is known" in shown.stderr


async def test_why_logs_and_report_know_a_cluster_that_is_gone(
    ray_crds: ControlPlane, recorded_failures: RecordedFailures, tmp_path: Path
) -> None:
    async with built_server(recorded_failures.store, tmp_path / "served") as server, serving(server) as url:

        async def asked(*arguments: str) -> Shown:
            words = (*arguments, "-n", "recorded", "--history", url)
            return await asyncio.to_thread(run, ray_crds, *words)

        dead = "raycluster/named-trainer"
        why = await asked("why", dead)
        assert why.returncode == 1, why.stderr
        assert "CUDA error: out of memory while allocating 4.00 GiB" in why.stdout
        report = await asked("report", dead, "-o", "json")
        assert json.loads(report.stdout)["outcome"] == "failed"
        files = await asked("logs", dead)
        assert "-618.err" in files.stdout, files
        listed = [line.split() for line in files.stdout.splitlines()]
        node, file = next(line for line in listed if line[1].endswith("-618.err"))
        shown = await asked("logs", dead, "--file", file, "--node", node, "--tail", "1")
        nobody = await asked("why", "raycluster/never-was")
        assert shown.stdout.strip() == "CUDA error: out of memory while allocating 4.00 GiB"
        assert nobody.returncode == 3
        archive = await asked("support", dead, "-o", str(tmp_path / "a.tar.gz"))
        assert archive.returncode == 0, archive.stderr
        with tarfile.open(tmp_path / "a.tar.gz") as tar:
            assert any(name.endswith("/report.txt") for name in tar.getnames())


def test_a_support_archive_has_everything_but_secrets(
    ray_crds: ControlPlane, sick: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = run(ray_crds, "support", "raycluster/demo", "-n", sick)
    assert shown.returncode == 0, shown.stderr
    path = next(tmp_path.glob(f"raykeeper-support-{sick}-demo-*.tar.gz"))
    assert path.stat().st_mode & 0o777 == 0o600
    with tarfile.open(path) as tar:
        files = {name.split("/", 1)[1]: _text(tar, name) for name in tar.getnames()}
    assert {"README.txt", "status.txt", "status.json", "events.json", "objects/RayCluster-demo.json"} <= set(files)
    assert "objects/Pod-demo-worker.json" in files
    assert "cannot pull" in files["events.json"]
    assert not [name for name, text in files.items() if SECRET in text]
    again = run(ray_crds, "support", "raycluster/demo", "-n", sick, "-o", str(path))
    assert (again.returncode, "there is such a file already" in again.stderr) == (2, True)


def test_kubectl_finds_the_plugin_and_help_has_examples_and_every_command(control_plane: ControlPlane) -> None:
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = [str(binary("kubectl")), "raykeeper", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PATH": folders})
    for word in ("status", "why", "logs", "report", "support", "kubectl raykeeper status rayjob/train"):
        assert word in shown.stdout


async def test_why_finds_the_history_server_of_the_chart_through_the_kubernetes_api(
    ray_crds: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = own_address()
    seen: list[tuple[str, str | None]] = []

    async def history(request: web.BaseRequest) -> web.StreamResponse:
        seen.append((request.path, request.headers.get("X-Ray-Authorization")))
        headline = {"text": "ValueError: no such column", "what": "the driver"}
        return web.json_response({"outcome": "failed", "cluster": "x", "headline": headline})

    monkeypatch.setenv("RAYKEEPER_AUTH_TOKEN", "s3cret")
    async with served(history, host=host) as url:
        await asyncio.to_thread(put_service, ray_crds, namespace, host, int(url.rpartition(":")[2]))
        shown = await asyncio.to_thread(run, ray_crds, "why", "job/gone", "-n", namespace)
    assert shown.returncode == 1, shown.stderr
    assert "ValueError: no such column" in shown.stdout
    assert seen == [(f"/api/keeper/v1/rayjobs/{namespace}/gone/report", "Bearer s3cret")]


def put_service(plane: ControlPlane, namespace: str, host: str, port: int) -> None:
    """The Service of a history server, with a pod that has this machine's address."""
    api = f"/api/v1/namespaces/{namespace}"
    spec = {"containers": [{"name": "history", "image": "raykeeper"}], "nodeName": "none"}
    plane.admin.post(f"{api}/pods", {"metadata": {"name": "history"}, "spec": spec})
    status = {"phase": "Running", "podIP": host, "podIPs": [{"ip": host}]}
    plane.admin.patch(f"{api}/pods/history/status", {"status": status})
    labels = {"app.kubernetes.io/name": "ray-history-server"}
    ports = [{"name": "http", "port": 80, "targetPort": port}]
    plane.admin.post(f"{api}/services", {"metadata": {"name": "history", "labels": labels}, "spec": {"ports": ports}})
    target = {"kind": "Pod", "namespace": namespace, "name": "history"}
    subset = {"addresses": [{"ip": host, "targetRef": target}], "ports": [{"name": "http", "port": port}]}
    plane.admin.post(f"{api}/endpoints", {"metadata": {"name": "history"}, "subsets": [subset]})
