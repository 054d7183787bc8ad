"""Our own pages in a real browser: nothing a person could stumble over, wide and narrow, light and dark."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from bed.npm import npm_is_missing
from history.browser.accessibility import barriers_of, install_axe, overflow_of
from history.browser.dead_session import put_dead_session, serving_process
from history.browser.inspecting import faults_on
from history.browser.own_pages import LONG_NAME, OWN_PAGES, PREFIX, UNSTARTED, OwnPage
from history.browser.tab import Tab
from raykeeper.layout.keys import SessionId
from recording.archives import ARCHIVES, unpack_into
from support.history_scene import STARTED_AT, local_store, put_session
from support.raycapture import RayCapture

pytestmark = [pytest.mark.bed, pytest.mark.skipif(npm_is_missing() is not None, reason=str(npm_is_missing()))]


@pytest.fixture(scope="module")
def site(raycapture: RayCapture, server_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with the recorded session and others beside it."""
    store = tmp_path_factory.mktemp("own")
    asyncio.run(fill(raycapture, store))
    with serving_process(store, server_folder / "own") as url:
        yield url.partition("/s/")[0]


async def fill(capture: RayCapture, folder: Path) -> None:
    await put_dead_session(capture, folder)
    unpack_into(folder, ARCHIVES / f"{UNSTARTED}.tar.zst")
    store = local_store(folder)
    for number in range(60):
        session = SessionId("team-a", f"train-{number % 7}", f"session_{number:05d}")
        started_at = STARTED_AT - timedelta(hours=number)
        await put_session(store, session, started_at=started_at, ended_at=started_at + timedelta(minutes=number))
    await put_session(store, SessionId(LONG_NAME, LONG_NAME, LONG_NAME), owner=("RayJob", LONG_NAME))


@pytest.mark.parametrize("page", OWN_PAGES, ids=lambda page: page.name)
async def test_a_page_has_no_barriers_no_errors_and_no_overflow(
    page: OwnPage, tab: Tab, site: str, shots: Path
) -> None:
    assert await faults_on(page, tab, site, shots) == []


async def test_times_are_told_in_the_readers_zone_with_utc_at_hand(tab: Tab, site: str) -> None:
    await tab.open(f"{site}/?cluster=train-1")
    await tab.shows(["train-1"])
    title = await tab.value_of("document.querySelector('tbody time').title")
    assert title.startswith("2026-11-")
    assert " UTC (shown in " in title


async def test_a_table_is_narrowed_while_one_types(tab: Tab, site: str) -> None:
    await tab.open(f"{site}/?limit=20")
    await tab.shows(["train-1"])
    await tab.run(
        "const box = document.querySelector('input[data-narrows]'); box.value = 'session_00007';"
        "box.dispatchEvent(new Event('input'))"
    )
    await tab.shows(["1 of 20"])
    assert "session_00008" not in await tab.text()


async def test_the_address_of_a_report_is_copied(tab: Tab, site: str) -> None:
    await tab.open(f"{site}{PREFIX}/report")
    await tab.shows(["Copy link"])
    await tab.run("navigator.clipboard.writeText = async text => { window.copied = text }")
    await tab.click("Copy link", "button")
    await tab.shows(["Copied"])
    assert await tab.value_of("window.copied") == f"{site}{PREFIX}/report"


async def test_what_axe_finds_is_noticed(tab: Tab, site: str) -> None:
    await tab.open(site)
    await tab.shows(["train-1"])
    await tab.run("document.querySelector('main').insertAdjacentHTML('beforeend', '<input><div class=x>x</div>')")
    await tab.run("document.querySelector('.x').style.width = '9000px'")
    await install_axe(tab)
    found = " ".join([*await barriers_of(tab), *await overflow_of(tab)])
    assert "label: " in found
    assert "overflow: " in found
