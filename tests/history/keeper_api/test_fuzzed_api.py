"""Schemathesis asks what it can think of: no answer is a mistake of ours, and none is outside what we documented."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from raykeeper.history.http.app import make_app
from raykeeper.history.program import open_history
from raykeeper.history.settings import HistorySettings, HistoryStoreSettings
from raykeeper.layout.keys import SessionId
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from support.history_scene import STARTED_AT, put_session
from support.raycapture import SESSION, RayCapture, put_into
from support.serving_history import serving

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_headers_conformance,response_schema_conformance,negative_data_rejection,unsupported_method"
)
KNOWN_NAMES = {"namespace": SESSION.namespace, "cluster": SESSION.cluster, "session": SESSION.session}
ENDING_SECONDS = 120


@asynccontextmanager
async def recorded_server(capture: RayCapture, folder: Path) -> AsyncIterator[str]:
    """The address of a whole server over the recorded run and a few sessions beside it."""
    settings = parse_store_url(f"file://{folder}/store", {})
    store = open_store(settings)
    await put_into(store, capture, "final")
    for number in range(5):
        session = SessionId("team-a", "train", f"session_{number}")
        await put_session(store, session, started_at=STARTED_AT + timedelta(days=number), ended_at=STARTED_AT)
    server = HistorySettings(HistoryStoreSettings(f"file://{folder}/store"))
    async with open_history(server, settings, folder / "cache") as history:
        await history.sessions.open(SESSION)
        async with serving(make_app(history)) as address:
            yield address


async def fuzz(address: str, folder: Path, names: dict[str, str], phases: str, seconds: int) -> tuple[int, str]:
    """Ask for about so long; the exit code and all that was printed."""
    settings = folder / "schemathesis.toml"
    lines = (f'"path.{name}" = "{value}"' for name, value in names.items())
    settings.write_text("[parameters]\n" + "\n".join(lines) + "\n")
    command = [
        *(str(Path(sys.executable).with_name("schemathesis")), f"--config-file={settings}", "run"),
        *(f"{address}/api/keeper/v1/openapi.json", f"--checks={CHECKS}", f"--max-time={seconds}"),
        *(f"--phases={phases}", "--workers=2", "--no-color", "--request-timeout=60"),
        *("--suppress-health-check=all", "--warnings=off"),
    ]
    running = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, cwd=folder
    )
    async with asyncio.timeout(seconds + ENDING_SECONDS):
        printed, _ = await running.communicate()
    return running.returncode or 0, printed.decode()


@pytest.mark.parametrize(
    ("names", "phases", "seconds"),
    [
        pytest.param({}, "coverage", 10, id="any-names"),
        pytest.param(KNOWN_NAMES, "fuzzing", 10, id="a-real-session"),
        pytest.param({}, "coverage,fuzzing", 240, id="any-names-for-long", marks=pytest.mark.soak),
        pytest.param(KNOWN_NAMES, "coverage,fuzzing", 240, id="a-real-session-for-long", marks=pytest.mark.soak),
    ],
)
async def test_no_answer_is_outside_the_document(
    names: dict[str, str], phases: str, seconds: int, raycapture: RayCapture, tmp_path: Path
) -> None:
    (tmp_path / "cache").mkdir()
    async with recorded_server(raycapture, tmp_path) as address:
        code, printed = await fuzz(address, tmp_path, names, phases, seconds)
    assert code == 0, printed
