"""`raykeeper history` from outside: its help, what ends it at once, KubeRay's name and flags, and a real process."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from typer.testing import CliRunner

from raykeeper.cli.app import app
from raykeeper.cli.main import to_arguments
from raykeeper.errors import Misconfigured
from raykeeper.history.environment import VARIABLES
from raykeeper.history.flags import FLAGS
from raykeeper.history.main import run
from raykeeper.history.program import is_awaited
from raykeeper.history.settings import GrafanaSettings, HistorySettings, HistoryStoreSettings
from raykeeper.history.sources import read_settings
from support.conditions import eventually
from support.history_scene import SESSION, PackBuilder, local_store, put_session, session_url
from support.serving_history import serving
from support.whole_history import built_server

COMMAND = (sys.executable, "-m", "raykeeper.cli.main")
SHOW_HELP = """
import sys
from raykeeper.cli.app import app
app(["history", "--help"], prog_name="raykeeper", standalone_mode=False)
print(*sys.modules)
"""
STORE = "--store=file:///history"
KUBERAY_MANIFEST = (
    "--storage-backend=s3",
    "--storage-root-dir=log",
    "--storage-backend-config-path=/etc/s3.json",
    "--kubeconfigs=",
    "--use-kubernetes-proxy=false",
    "--use-auth-token-mode",
    "--dashboard-dir=/dashboard",
    "--kube-api-qps=100",
    "--kube-api-burst=200",
    "--session-process-timeout=2m",
    "--session-cache-size=100",
    "--session-cache-max-memory=2Gi",
    "--session-cache-ttl=0",
)


@pytest.mark.parametrize("command", ["history", "historyserver"])
@pytest.mark.parametrize("argument", ["-h", "--help"])
def test_the_help_tells_every_flag_and_variable(command: str, argument: str) -> None:
    outcome = CliRunner().invoke(app, [command, argument], terminal_width=200)
    assert outcome.exit_code == 0
    words = {word.strip(".,:") for word in outcome.output.split()}
    assert {flag.spelling for flag in FLAGS} <= words
    assert VARIABLES.keys() <= words


def test_the_help_does_not_wait_for_the_program() -> None:
    output = subprocess.run([sys.executable, "-c", SHOW_HELP], capture_output=True, text=True, check=True).stdout
    loaded = set(output.splitlines()[-1].split())
    assert not {"duckdb", "starlette", "uvicorn", "msgspec", "asyncio", "raykeeper.history.settings"} & loaded


@pytest.mark.parametrize("argv", [["/usr/local/bin/historyserver", "--x"], ["raykeeper", "historyserver", "--x"]])
def test_it_is_called_as_kuberays_program_or_as_a_command(argv: list[str]) -> None:
    assert to_arguments(argv) == ["historyserver", "--x"]


def test_a_manifest_of_kuberays_is_read_and_what_has_no_effect_is_named() -> None:
    settings = read_settings(KUBERAY_MANIFEST, {}, as_kuberay=True)
    assert settings.store == HistoryStoreSettings(backend="s3", root_dir="log", config_file=Path("/etc/s3.json"))
    assert settings.dashboard_dir == Path("/dashboard")
    assert settings.bind == ":8080"
    assert set(settings.ignored) == {
        "--kubeconfigs",
        "--use-kubernetes-proxy",
        "--use-auth-token-mode",
        "--kube-api-qps",
        "--kube-api-burst",
        "--session-process-timeout",
        "--session-cache-size",
        "--session-cache-max-memory",
        "--session-cache-ttl",
    }


def test_flags_beat_variables() -> None:
    environment = {"RAYKEEPER_STORE_URL": "file:///from-variable", "STORAGE_BACKEND": "s3", "RAYKEEPER_CACHE_MB": "5"}
    assert read_settings([STORE], environment).store.url == "file:///history"
    assert read_settings(["--storage-backend=gcs"], {"RAYKEEPER_STORE_URL": "file:///x"}).store.backend == "gcs"
    assert read_settings([STORE, "--cache-mb=7"], environment).cache.max_bytes == 7 << 20


def test_grafana_is_read_from_rays_own_variables() -> None:
    environment = {"RAY_GRAFANA_HOST": "http://a", "RAY_GRAFANA_IFRAME_HOST": "http://b", "RAY_GRAFANA_ORG_ID": "7"}
    assert read_settings([STORE], environment).grafana == GrafanaSettings("http://b", "7")
    assert read_settings([STORE], {}).grafana == HistorySettings(HistoryStoreSettings()).grafana


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "--store='' cannot be used: say where the history is"),
        (("--store=ftp://x",), "storage URL='ftp://x' cannot be used"),
        (("--storage-backend=localtest",), "STORAGE_BACKEND='localtest' cannot be used"),
        ((STORE, "--storage-backend=s3"), "--storage-backend='s3' cannot be used: --store already says"),
        ((STORE, "--bind=8080"), "--bind='8080' cannot be used"),
        ((STORE, "--bind=0"), "--bind='0' cannot be used"),
        ((STORE, "--bind=192.0.2.1:1", "--auth=none"), "--bind='192.0.2.1:1' cannot be used: cannot listen there"),
        ((STORE, "--cache-dir=/proc/no/such"), "--cache-dir='/proc/no/such' cannot be used"),
        ((STORE, "--cache-mb=0"), "--cache-mb='0' cannot be used"),
        ((STORE, "--stoer=x"), "did you mean --store"),
    ],
)
def test_a_setting_that_cannot_be_used_stops_it_by_name(
    arguments: tuple[str, ...], complaint: str, tmp_path: Path
) -> None:
    cache = () if any("--cache-dir" in text for text in arguments) else (f"--cache-dir={tmp_path}",)
    with pytest.raises(Misconfigured) as stopped:
        run([*arguments, *cache], {})
    assert complaint in str(stopped.value)


@asynccontextmanager
async def a_process(command: str, *arguments: str, **variables: str) -> AsyncIterator[SimpleNamespace]:
    """The program with its address, once it listens."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND, command, *arguments, stdout=asyncio.subprocess.PIPE, env=variables or None
    )
    assert process.stdout
    try:
        lines: list[dict[str, Any]] = []
        async with asyncio.timeout(60):
            while not lines or lines[-1]["msg"] != "listening":
                lines.append(json.loads(await process.stdout.readline()))
        yield SimpleNamespace(process=process, lines=lines, url=f"http://127.0.0.1:{lines[-1]['port']}")
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_a_real_process_shows_a_store_and_ends_when_it_is_told(tmp_path: Path) -> None:
    store = local_store(tmp_path / "store")
    await put_session(store)
    packs = PackBuilder(store)
    packs.add("raylet.out", b"hello\n")
    await packs.put()
    arguments = (f"--store=file://{tmp_path}/store", "--bind=127.0.0.1:0", f"--cache-dir={tmp_path}/cache")
    async with a_process("history", *arguments) as server, aiohttp.ClientSession(server.url) as http:
        async with http.get("/sessions") as page:
            assert SESSION.session in await page.text()
        async with http.get(f"{session_url()}/api/version") as version:
            assert (await version.json())["session_name"] == SESSION.session
        async with http.get(f"{session_url()}/api/v0/logs?node_id={packs.node_id}") as listed:
            assert (await listed.json())["data"]["result"] == {"raylet": ["raylet.out"]}
        async with http.get(f"{session_url()}/api/v0/tasks") as tasks:
            assert (await tasks.json())["data"]["result"]["total"] == 0
        server.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(server.process.wait(), 30) == 0


async def test_under_kuberays_name_a_warning_is_said_at_start(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    arguments = (f"--store=file://{tmp_path}/store", "--bind=:0", f"--cache-dir={tmp_path}/cache", "--kube-api-qps=1")
    async with a_process("historyserver", *arguments) as server:
        warnings = [line["msg"] for line in server.lines if line["level"] == "warning"]
        async with aiohttp.ClientSession(server.url) as http, http.get("/") as page:
            assert "Whoever reaches this address" in await page.text()
    assert warnings == [
        "settings without effect",
        "anybody who reaches this address can read all history; set --auth=token",
    ]


def test_a_store_that_is_not_there_ends_the_server_at_its_start(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="there is no such folder on this machine"):
        run([f"--store=file://{tmp_path}/nowhere/store", "--bind=127.0.0.1:0", f"--cache-dir={tmp_path}/cache"], {})


@pytest.mark.parametrize("path", ["/nonexistent-of-the-test", "/hme/user/x"])
def test_a_slip_in_the_path_of_a_store_is_refused_with_or_without_a_terminal(path: str, tmp_path: Path) -> None:
    assert [is_awaited(Path(path), in_terminal=is_there) for is_there in (True, False)] == [False, False]
    with pytest.raises(Misconfigured, match="there is no such folder on this machine"):
        run([f"--store=file://{path}", "--bind=127.0.0.1:0", f"--cache-dir={tmp_path}/cache"], {})


def test_a_missing_folder_of_a_volume_is_waited_for_and_in_a_terminal_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_awaited(tmp_path / "store", in_terminal=False), "the service of a collector beside it may make it"
    assert not is_awaited(tmp_path / "stroe", in_terminal=True), "whoever types it can make it"
    monkeypatch.setattr(Path, "is_mount", lambda self: self == tmp_path)
    assert is_awaited(tmp_path / "store", in_terminal=True), "a new shared volume"
    assert not is_awaited(tmp_path / "missing" / "store", in_terminal=True)
    (tmp_path / "file").touch()
    assert not is_awaited(tmp_path / "file", in_terminal=False)


async def test_a_folder_that_the_first_collector_will_make_is_waited_for(tmp_path: Path) -> None:
    arguments = (f"--store=file://{tmp_path}/store", "--bind=127.0.0.1:0", f"--cache-dir={tmp_path}/cache")
    async with a_process("history", *arguments) as server, aiohttp.ClientSession(server.url) as http:
        [warning] = [line["msg"] for line in server.lines if line["level"] == "warning"]
        assert warning == "the store's folder is not there yet: waiting for the first collector"
        async with http.get("/sessions") as page:
            assert page.status == 200
        await put_session(local_store(tmp_path / "store"))

        async def is_listed() -> bool:
            async with http.get("/sessions") as page:
                return SESSION.session in await page.text()

        await eventually(is_listed)


async def test_a_person_at_a_terminal_is_greeted_with_address_and_sessions(tmp_path: Path) -> None:
    await put_session(local_store(tmp_path / "store"))
    terminal, its_end = os.openpty()
    command = [*COMMAND, "history", f"--store=file://{tmp_path}/store", "--bind=127.0.0.1:0"]
    server = await asyncio.create_subprocess_exec(*command, f"--cache-dir={tmp_path}/cache", stderr=its_end)
    os.close(its_end)
    try:
        async with asyncio.timeout(60):
            first = (await asyncio.to_thread(os.read, terminal, 4096)).decode().splitlines()[0]
    finally:
        server.terminate()
        await server.wait()
        os.close(terminal)
    assert re.match(r"Raykeeper \S+ · 1 session in file://\S+ · http://127\.0\.0\.1:\d+", first)


async def test_a_failed_job_is_opened_in_the_browser(tmp_path: Path) -> None:
    async with built_server(tmp_path / "store", tmp_path / "served") as server, serving(server) as url:
        named = await asyncio.to_thread(
            CliRunner().invoke, app, ["open", "a/b/latest/my job", "--server", url, "--print"]
        )
        home = await asyncio.to_thread(CliRunner().invoke, app, ["open", "--server", url, "--print"])
    assert (named.exit_code, named.stdout) == (0, f"{url}/s/a/b/latest/job/my%20job\n")
    assert (home.exit_code, home.stdout) == (0, f"{url}/\n"), "nothing failed yet"


def test_without_a_server_the_next_command_is_named() -> None:
    refused = CliRunner().invoke(app, ["open", "--server", "http://127.0.0.1:9", "--print"])
    assert refused.exit_code != 0
    assert "raykeeper history --store=" in str(refused.exception)
