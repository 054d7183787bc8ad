"""The timeline in a real browser: zoom, drag, brush, click and keys; what a hostile session is called stays text."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bed.npm import npm_is_missing
from history.browser.dead_session import PREFIX as GOLDEN_PREFIX
from history.browser.dead_session import put_dead_session, serving_process
from history.browser.inspecting import faults_on
from history.browser.own_pages import OwnPage
from history.browser.tab import Point, Tab
from raykeeper.history.overview.timeline_index import FAILED
from raykeeper.layout.keys import EventSegmentKey, PolledKey, SessionId
from raykeeper.layout.polled import encode_polled
from raykeeper.layout.records import PolledAnswer
from raykeeper.storage.store import ObjectStore
from support.conditions import eventually
from support.history_scene import local_store, put_beat, put_session
from support.ingest_scene import START_NS, segment
from support.raycapture import RayCapture
from support.timeline_scene import MS, Ran, events_of

pytestmark = [pytest.mark.bed, pytest.mark.skipif(npm_is_missing() is not None, reason=str(npm_is_missing()))]

PREFIX = GOLDEN_PREFIX.rstrip("/")
HOSTILE = SessionId("team-a", "hostile", "session_2026-11-15_10-00-00_000000_9")
LIVE = SessionId("team-a", "live", "session_2026-11-17_10-00-00_000000_1")
LIVE_JOB = f"/s/{LIVE}/job/nightly"
HOSTILE_NAME = "<img src=x onerror=window.pwned=1>"
ROOT = "document.querySelector('[data-timeline]')"


@pytest.fixture(scope="module")
def site(raycapture: RayCapture, server_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with the recorded session, a hostile one and one that runs."""
    store = tmp_path_factory.mktemp("timeline")
    asyncio.run(_fill(raycapture, store))
    with serving_process(store, server_folder / "timeline") as url:
        asyncio.run(put_beat(local_store(store), session=LIVE))
        yield url.partition("/s/")[0]


async def _fill(capture: RayCapture, folder: Path) -> None:
    await put_dead_session(capture, folder)
    store = local_store(folder)
    await put_session(store, HOSTILE)
    error = {"errorType": "TASK_EXECUTION_EXCEPTION", "errorMessage": HOSTILE_NAME}
    ran = [Ran(number, number * MS, number * MS + 9 * MS, function=HOSTILE_NAME) for number in range(30)]
    ran.append(Ran(99, 35 * MS, 40 * MS, FAILED, function=HOSTILE_NAME, more=(("rayErrorInfo", error),)))
    await store.put(EventSegmentKey(HOSTILE, "aa" * 28, START_NS, 1).key, segment(events_of(ran)))
    await _put_running_job(store)


async def _put_running_job(store: ObjectStore) -> None:
    now = datetime.now(UTC)
    await put_session(store, LIVE, started_at=now)
    ran = [Ran(number, number * 20 * MS, (number * 20 + 15) * MS, function="step") for number in range(5)]
    await store.put(EventSegmentKey(LIVE, "aa" * 28, START_NS, 1).key, segment(events_of(ran)))
    job = {"submission_id": "nightly", "job_id": "01000000", "status": "RUNNING", "entrypoint": "python nightly.py"}
    body = msgspec.Raw(msgspec.json.encode([job | {"start_time": START_NS // MS}]))
    answer = PolledAnswer(path="/api/jobs/", polled_at=now, status=200, body=body)
    await store.put(PolledKey(LIVE, "/api/jobs/", int(now.timestamp() * 1000)).key, encode_polled(answer))


async def opened(tab: Tab, address: str) -> None:
    await tab.look_as(1400, "light")
    await tab.open(address)
    await shown(tab, 1)


async def shown(tab: Tab, times: int) -> None:
    """Until the server's answers were drawn so often."""

    async def is_shown() -> bool:
        return bool(await tab.value_of(f"+({ROOT}?.dataset.shown ?? 0) >= {times}") and tab.traffic.is_quiet)

    await eventually(is_shown)


async def times(tab: Tab) -> int:
    return int(await tab.value_of(f"+{ROOT}.dataset.shown"))


async def place_in(tab: Tab, x: float, row: int) -> Point:
    """A place of the canvas: a share of its plot, in a lane."""
    box: list[float] = await tab.value_of(
        "(() => { const c = document.querySelector('canvas'); c.scrollIntoView({block: 'start'});"
        " const b = c.getBoundingClientRect(); return [b.x, b.y, b.width]; })()"
    )
    return box[0] + 200 + (box[2] - 200) * x, box[1] + 30 + 30 * row + 15


async def length(tab: Tab) -> str:
    return str(await tab.value_of(f"{ROOT}.querySelector('[role=status]').textContent.split(' shown')[0]"))


async def asked(tab: Tab) -> dict[str, Any]:
    found: dict[str, Any] = await tab.value_of("Object.fromEntries(new URLSearchParams(location.search))")
    return found


@pytest.mark.parametrize(
    "page",
    [
        OwnPage("timeline-of-job", f"{PREFIX}/job/golden-main/timeline?group=function", ("Group by", "Lanes 1")),
        OwnPage("timeline-of-session", f"{PREFIX}/timeline?group=worker", ("Group by", "Ray internals")),
        OwnPage("timeline-hostile", f"/s/{HOSTILE}/timeline?group=function", ("31 task attempts",)),
    ],
    ids=lambda page: page.name,
)
async def test_a_timeline_has_no_barriers_no_errors_and_no_overflow(
    page: OwnPage, tab: Tab, site: str, shots: Path
) -> None:
    words = OwnPage(page.name, page.path, tuple(word.replace("Lanes 1", "lanes 1") for word in page.words))
    assert await faults_on(words, tab, site, shots) == []


async def test_the_wheel_zooms_dragging_pans_and_the_address_keeps_the_range(tab: Tab, site: str, shots: Path) -> None:
    await opened(tab, f"{site}{PREFIX}/job/golden-main/timeline?group=function")
    whole, middle = await length(tab), await place_in(tab, 0.5, 1)
    assert "start" not in await asked(tab)
    before = await times(tab)
    for _ in range(8):
        await tab.wheel(middle, -100)
    await shown(tab, before + 1)
    zoomed = await asked(tab)
    assert await length(tab) != whole
    assert zoomed["start"] < zoomed["end"]
    before, middle = await times(tab), await place_in(tab, 0.5, 1)
    await tab.drag(middle, (middle[0] - 300, middle[1]))
    await shown(tab, before + 1)
    panned = await asked(tab)
    assert panned["start"] > zoomed["start"]
    await tab.screenshot(shots / "timeline-zoomed.png")
    await tab.open(await tab.address())
    await shown(tab, 1)
    assert (await asked(tab))["start"] == panned["start"]
    await tab.click("Show all", "button")
    await shown(tab, 2)
    assert "start" not in await asked(tab)


async def test_a_click_opens_the_task_with_its_error_and_names_stay_text(tab: Tab, site: str, shots: Path) -> None:
    await opened(tab, f"{site}/s/{HOSTILE}/timeline?group=function")
    await tab.click_at(await place_in(tab, 0.985, 0))  # the last one alone
    await tab.shows([f"{HOSTILE_NAME} · failed", "TASK_EXECUTION_EXCEPTION", "Ran for", "Asked for"])
    await tab.screenshot(shots / "timeline-card.png")
    await tab.point_at(await place_in(tab, 0.985, 0))
    await tab.shows([f"{HOSTILE_NAME}: failed, 5 ms"])
    assert await tab.value_of("document.querySelectorAll('main img').length") == 0
    assert await tab.value_of("window.pwned") is None
    await tab.click("Close", "button")
    assert await tab.value_of("document.activeElement.tagName") == "CANVAS"


async def test_a_card_comes_although_somebody_zooms_while_it_is_read(tab: Tab, site: str) -> None:
    await opened(tab, f"{site}/s/{HOSTILE}/timeline?group=function")
    await tab.run(
        "const real = fetch; window.fetch = async (url, how) => {"
        " if (url.includes('/tasks/')) await new Promise(go => { window.release = go }); return real(url, how) }"
    )
    await tab.click_at(await place_in(tab, 0.985, 0))
    await tab.shows(["Loading…"])
    before = await times(tab)
    await tab.wheel(await place_in(tab, 0.5, 0), -100)
    await shown(tab, before + 1)
    await tab.run("window.release()")
    await tab.shows([f"{HOSTILE_NAME} · failed", "Ran for"])


async def test_a_brush_shows_exactly_the_tasks_of_its_range_and_lanes(tab: Tab, site: str, shots: Path) -> None:
    await opened(tab, f"{site}{PREFIX}/job/golden-main/timeline?group=function")
    begin, end = await place_in(tab, 0.0, 0), await place_in(tab, 0.999, 1)
    await tab.drag((begin[0] + 2, begin[1]), end, shift=True)
    await tab.shows(["task attempts in", "of 2 lanes"])
    total = int(await tab.value_of(f"{ROOT}.dataset.brushed"))
    rows = await tab.value_of(
        "[...document.querySelectorAll('.told tbody tr')].slice(0, 2).map(row => +row.cells[1].textContent)"
    )
    assert total == sum(rows)
    names = await tab.value_of(
        "[...document.querySelectorAll('.brushed li > button')].map(b => b.textContent.split(' ·')[0])"
    )
    labels = await tab.value_of(
        "[...document.querySelectorAll('.told tbody th')].slice(0, 2).map(t => t.textContent.trim())"
    )
    assert set(names) == set(labels)
    assert len(names) == total
    await tab.screenshot(shots / "timeline-brushed.png", is_whole=True)


async def test_the_keyboard_alone_zooms_pans_chooses_and_opens(tab: Tab, site: str, shots: Path) -> None:
    await opened(tab, f"{site}{PREFIX}/job/golden-main/timeline?group=function")
    await tab.run("document.querySelector('canvas').focus()")
    for key in ("+", "+", "ArrowRight"):
        before = await times(tab)
        await tab.press(key)
        await shown(tab, before + 1)
    first = await asked(tab)
    before = await times(tab)
    await tab.press("0")
    await shown(tab, before + 1)
    assert ("start" in first, "start" in await asked(tab)) == (True, False)
    await tab.press("ArrowDown")
    await tab.shows(["n goes to the next one"])
    await tab.press("n")
    await tab.shows(["Enter opens it."])
    await tab.screenshot(shots / "timeline-keyboard.png")
    await tab.press("Enter")
    await tab.shows(["Attempt", "Asked for"])
    assert await tab.value_of("document.activeElement.tagName") == "H3"


async def test_another_grouping_and_rays_own_lanes_are_asked_for(tab: Tab, site: str) -> None:
    await opened(tab, f"{site}{PREFIX}/timeline")
    await tab.run(
        "const s = document.querySelector('select[name=group]'); s.value = 'node';"
        "s.dispatchEvent(new Event('change', {bubbles: true}))"
    )
    await shown(tab, 2)
    assert (await asked(tab))["group"] == "node"
    await tab.run("document.querySelector('input[name=internals]').click()")
    await shown(tab, 3)
    assert "Ray internals folded" not in await tab.value_of("document.querySelector('.told').textContent")


async def renewed(tab: Tab) -> None:
    """Until the page of a job that runs was asked for once more."""
    await tab.run("document.querySelector('.job-head').dataset.old = ''")

    async def is_new() -> bool:
        return bool(await tab.value_of("!!document.querySelector('.job-head[data-live]:not([data-old])')"))

    await eventually(is_new)


async def test_the_timeline_of_a_job_that_runs_outlives_renewals_of_its_page(tab: Tab, site: str) -> None:
    await opened(tab, f"{site}{LIVE_JOB}/timeline?group=function")
    await tab.click_at(await place_in(tab, 0.05, 0))
    await tab.shows(["step · finished", "Ran for"])
    for _ in range(2):
        await renewed(tab)
    assert "Ran for" in await tab.text()
    drawn = "(c => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data].some(Boolean))"
    assert await tab.value_of(f"{drawn}(document.querySelector('canvas'))")
    await tab.click("Close", "button")
    before = await times(tab)
    await tab.press("+")
    await shown(tab, before + 1)


async def test_a_renewed_tab_has_local_times_and_tables_that_are_narrowed(tab: Tab, site: str) -> None:
    await tab.open(f"{site}{LIVE_JOB}/tasks")
    await tab.shows(["By function"])
    await renewed(tab)
    assert " (shown in " in await tab.value_of("document.querySelector('.job-head time').title")
    narrow = "const box = document.querySelector('.tab input[data-narrows]'); box.value = 'no-such-row';"
    assert await tab.value_of("!!document.querySelector('.tab input[data-narrows]').offsetParent")
    await tab.run(f"{narrow} box.dispatchEvent(new Event('input', {{bubbles: true}}))")
    await tab.shows(["0 of "])
    await renewed(tab)
    assert "0 of " in await tab.text(), "what somebody typed stays"
