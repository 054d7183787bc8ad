"""Our own pages in a real browser about a session of a million tasks: as quick to look at as any other."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from bed.npm import npm_is_missing
from bed.waiting import wait_until
from bench.sessions import SessionSpec, write_session
from history.browser.dead_session import serving_process
from history.browser.inspecting import faults_on
from history.browser.own_pages import OwnPage
from history.browser.tab import Tab
from support.history_scene import local_store

pytestmark = [
    pytest.mark.bed,
    pytest.mark.soak,
    pytest.mark.timeout(1800),  # most of it is the ingest of a million tasks on a machine that does other things too
    pytest.mark.skipif(npm_is_missing() is not None, reason=str(npm_is_missing())),
]

SPEC = SessionSpec(1_000_000, cluster="large")
INGEST_SECONDS = 900.0
PREFIX = f"/s/{SPEC.id}"
JOB = "05000000"
PAGES = (
    OwnPage("large-sessions", "/sessions", (SPEC.id.cluster,)),
    OwnPage("large-jobs", "/", (JOB, "main.py")),
    OwnPage("large-overview", f"{PREFIX}/overview", ("Tasks over time", "step_19")),
    OwnPage("large-job", f"{PREFIX}/job/{JOB}", ("Timeline",)),
    OwnPage("large-report", f"{PREFIX}/report", ("Root cause", "ValueError: bad value")),
    OwnPage("large-compare", f"/compare?a={SPEC.id}/01000000&b={SPEC.id}/{JOB}", ("What differs",)),
    OwnPage("large-search", f"{PREFIX}/search?text=bad+value", ("ValueError: bad value",)),
)


@pytest.fixture(scope="module")
def large_site(server_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that has read the session to its end."""
    store = tmp_path_factory.mktemp("large")
    asyncio.run(write_session(local_store(store), SPEC))
    with serving_process(store, server_folder / "large") as url:
        site = url.partition("/s/")[0]
        wait_until("the session is in tables", lambda: _is_read(site), INGEST_SECONDS)
        yield site


def _is_read(site: str) -> bool:
    with urllib.request.urlopen(f"{site}{PREFIX}/api/keeper/v1/overview") as answer:
        overview = json.load(answer)
    return bool(overview["counts"]["attempts"] == SPEC.tasks and not overview["facts"]["unread_bytes"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
async def test_a_page_about_a_million_tasks_is_like_any_other(
    page: OwnPage, tab: Tab, large_site: str, shots: Path
) -> None:
    assert await faults_on(page, tab, large_site, shots) == []
