"""One store, one server and one browser for all tests of this folder; pictures of what was seen are kept."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bed.fixtures import run_folder
from history.browser.dead_session import put_dead_session, serving_process
from history.browser.devtools import devtools
from history.browser.tab import Tab, new_tab
from support.raycapture import RayCapture, raycapture

__all__ = ["raycapture"]


@pytest.fixture(scope="module")
def dead_store(raycapture: RayCapture, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a session whose cluster is gone."""
    store = tmp_path_factory.mktemp("store")
    asyncio.run(put_dead_session(raycapture, store))
    return store


@pytest.fixture(scope="module")
def server_folder(request: pytest.FixtureRequest) -> Path:
    """Where servers keep their state: whatever still runs there is ended with the test run."""
    return run_folder(request.config) / f"history-{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="module")
def session_url(dead_store: Path, server_folder: Path) -> Iterator[str]:
    """The session's address in a history server."""
    with serving_process(dead_store, server_folder / "plain") as url:
        yield url


@pytest.fixture
async def tab(chromium: str) -> AsyncIterator[Tab]:
    """A new tab of the browser."""
    async with devtools(chromium) as browser, new_tab(browser) as opened:
        yield opened


@pytest.fixture(scope="module")
def unmeasured_url(
    raycapture: RayCapture, server_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The same session without anything that a collector polls: events and logs are all there is."""
    store = tmp_path_factory.mktemp("unmeasured")
    asyncio.run(put_dead_session(raycapture, store))
    for answer in store.rglob("polled/*/*"):
        answer.unlink()
    with serving_process(store, server_folder / "unmeasured") as url:
        yield url


@pytest.fixture(scope="session")
def pictures(pytestconfig: pytest.Config) -> Path:
    """Where screenshots are kept for people; not in git."""
    return pytestconfig.rootpath / "artefacts" / "stock-dashboard"


@pytest.fixture(scope="session")
def shots(pytestconfig: pytest.Config) -> Path:
    """Where screenshots are kept for people; not in git."""
    return pytestconfig.rootpath / "artefacts" / "own-pages"
