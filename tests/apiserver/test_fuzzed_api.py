"""Schemathesis asks what it can think of: no answer is a mistake of ours, and none is outside the document.

A 500 is no mistake by itself: it is KubeRay's code for what Kubernetes refused, and its text says what that was.
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from pathlib import Path

import psutil
import pytest

from bed.control_plane import ControlPlane
from bed.fixtures import make_namespace, remove_namespace
from support.api_processes import ApiProcess, api_server_on

CHECKS = "status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance"
ENDING_SECONDS = 120
MIB = 1 << 20
MOST_GROWTH = 48 * MIB
"""Of memory, by tens of thousands of different requests."""


async def fuzz(server: ApiProcess, folder: Path, namespace: str, phases: str, seconds: int) -> tuple[int, str]:
    """Ask for about so long; the exit code and all that was printed."""
    settings = folder / "schemathesis.toml"
    settings.write_text(f'[parameters]\n"path.namespace" = "{namespace}"\n' if namespace else "")
    # By one worker: Python 3.11 fails now and then where two threads parse source code, as Hypothesis does.
    command = [
        *(str(Path(sys.executable).with_name("schemathesis")), f"--config-file={settings}", "run"),
        *(f"{server.rest.server}/swagger/openapi.json", f"--checks={CHECKS}", f"--max-time={seconds}"),
        *(f"--url={server.rest.server}", f"--phases={phases}", "--no-color", "--request-timeout=60"),
        *("--suppress-health-check=all", "--warnings=off"),
    ]
    running = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, cwd=folder
    )
    async with asyncio.timeout(seconds + ENDING_SECONDS):
        printed, _ = await running.communicate()
    return running.returncode or 0, printed.decode()


@pytest.mark.parametrize(
    ("is_real", "phases", "seconds"),
    [
        pytest.param(False, "coverage", 15, id="any-namespace"),
        pytest.param(True, "fuzzing", 15, id="a-real-namespace"),
        pytest.param(False, "coverage,fuzzing", 240, id="any-namespace-for-long", marks=pytest.mark.soak),
        pytest.param(True, "coverage,fuzzing", 240, id="a-real-namespace-for-long", marks=pytest.mark.soak),
    ],
)
async def test_no_answer_is_outside_the_document(
    is_real: bool, phases: str, seconds: int, ray_crds: ControlPlane, tmp_path: Path
) -> None:
    namespace = f"fuzz-{uuid.uuid4().hex[:6]}"
    await asyncio.to_thread(make_namespace, ray_crds, namespace)
    with api_server_on(ray_crds, tmp_path, "--auth=none") as server:
        memory = psutil.Process(server.process.pid).memory_info
        before = memory().rss
        code, printed = await fuzz(server, tmp_path, namespace if is_real else "", phases, seconds)
        assert code == 0, printed
        assert "by a bug" not in server.output
        assert "raykeeper_apiserver_bugs_total 0.0" in (server.rest.raw("GET", "/metrics")).decode()
        assert memory().rss - before < MOST_GROWTH
    await asyncio.to_thread(remove_namespace, ray_crds, namespace)
