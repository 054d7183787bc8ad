"""The page of a job and the log viewer in a real browser, with recorded failures: clicks, keys, live tails, attacks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from bed.npm import npm_is_missing
from history.browser.accessibility import barriers_of, install_axe, overflow_of
from history.browser.dead_session import serving_process
from history.browser.inspecting import LOOKS, faults_on
from history.browser.own_pages import OwnPage
from history.browser.tab import Tab
from raykeeper.layout.keys import SessionId
from recording.archives import ARCHIVES, unpack_into
from support.conditions import eventually
from support.history_scene import HEAD_ID, PackBuilder, local_store, put_beat, put_end, put_session

pytestmark = [pytest.mark.bed, pytest.mark.skipif(npm_is_missing() is not None, reason=str(npm_is_missing()))]

RECORDED = ("named-trainer", "data-bad-record", "nested-queries", "all-good")
LIVE = SessionId("team-a", "live", "session_2026-11-17_10-00-00_000000_1")
EVIL = '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">'
NAMES = {"evil": f"{EVIL}.log".replace("/", "-"), "long": "long.log", "live": "live.out"}
LOG = f"/s/{LIVE}/log?node={HEAD_ID}"
LINES = 60_000


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jobs")
    for name in RECORDED:
        unpack_into(folder, ARCHIVES / f"{name}.tar.zst")
    asyncio.run(_fill(folder))
    return folder


async def _fill(folder: Path) -> None:
    kept = local_store(folder)
    await put_session(kept, LIVE)
    await put_beat(kept, session=LIVE)
    packs = PackBuilder(kept, session=LIVE)
    packs.add(NAMES["evil"], f"{EVIL}\n\x1b[31m{EVIL}\x1b[0m ERROR\n".encode())
    lines = [f"line {n}\n" if n % 20_000 else f"2026-11-17 ERROR train.py:3 -- broke at {n}\n" for n in range(1, LINES)]
    packs.add(NAMES["long"], "".join(lines).encode())
    packs.add(NAMES["live"], b"\x1b[36mbegun\x1b[0m\nWARNING slow\nDEBUG x\nValueError: y\n")
    await packs.put()


@pytest.fixture(scope="module")
def site(store: Path, server_folder: Path) -> Iterator[str]:
    with serving_process(store, server_folder / "jobs") as url:
        yield url.partition("/s/")[0]


def job(store: Path, name: str) -> str:
    """The path of a recorded session's job."""
    [session] = {path.name for path in store.glob(f"**/recorded/{name}/session_*")}
    return f"/s/recorded/{name}/{session}/job/nightly"


VIEWS = {
    "trainer": ("named-trainer", "", ("CUDA error: out of memory", "likely", "Root cause")),
    "trainer-logs": ("named-trainer", "/logs", ("trainer-2 .err", "Running entrypoint")),
    "trainer-actors": ("named-trainer", "/actors", ("trainer-2", "Ended because")),
    "trainer-timeline": ("named-trainer", "/timeline", ("trainer-2", "Events on the timeline")),
    "data": ("data-bad-record", "", ("could not convert string to float: '12,99 EUR'", "data_bad_record.py:14")),
    "nested": ("nested-queries", "", ('relation "sales_2026_03" does not exist', "Chain of causes")),
    "good": ("all-good", "", ("Nothing failed.", "Result")),
}


@pytest.mark.parametrize("view", VIEWS)
async def test_a_recorded_job_has_no_barriers_no_errors_and_no_overflow(
    view: str, tab: Tab, site: str, store: Path, shots: Path
) -> None:
    name, path, words = VIEWS[view]
    shown = tuple(word for word in words if word != "Chain of causes")  # a label for those who do not see it
    page = OwnPage(f"recorded-{view}", job(store, name) + path, shown)
    assert await faults_on(page, tab, site, shots) == []


@pytest.mark.parametrize(("view", "query"), [("line", "line=40000"), ("filter", "filter=broke"), ("begin", "")])
async def test_the_log_viewer_has_no_barriers_no_errors_and_no_overflow(
    view: str, query: str, tab: Tab, site: str, shots: Path
) -> None:
    page = OwnPage(f"log-{view}", f"{LOG}&file={NAMES['long']}&{query}", ("Next error", "Wrap"))
    assert await faults_on(page, tab, site, shots) == []


async def test_the_guilty_line_is_three_clicks_from_home(tab: Tab, site: str, store: Path, shots: Path) -> None:
    """Whatever is the closest way: a line of the report, a job, a session."""
    ways = ('.cause a[href*="/log?"]', 'a[href*="/named-trainer/"][href*="/job/"]', 'a[href*="/named-trainer/"]')
    await tab.open(site)
    await tab.shows(["named-trainer"])
    clicks = 0
    while "/log?" not in await tab.address():
        clicks += 1
        before = await tab.address()
        await tab.run(f"{json.dumps(ways)}.map(way => document.querySelector(way)).find(Boolean).click()")
        await eventually(partial(_is_elsewhere, tab, before))
        await tab.shows(["Raykeeper"])
    assert clicks <= 3
    await tab.screenshot(shots / "guilty-line.png")
    line = "document.querySelector('.row:target')"
    assert await tab.value_of(f"{line}.innerText.trim()") == "3\nCUDA error: out of memory while allocating 4.00 GiB"
    assert await tab.value_of(f"{line}.getBoundingClientRect().bottom < innerHeight")


async def _is_elsewhere(tab: Tab, before: str) -> bool:
    return await tab.address() != before


async def test_tabs_and_lines_are_used_with_a_keyboard(tab: Tab, site: str, store: Path) -> None:
    await tab.open(site + job(store, "named-trainer"))
    await tab.shows(["Why it failed"])
    await tab.run("document.querySelector('.tabs a[href$=\"/logs\"]').focus()")
    await tab.press("Enter")
    await tab.shows(["Running entrypoint"])
    await tab.run("document.querySelector('.log').focus()")
    await tab.press("n")
    assert "Traceback" in await tab.value_of("document.querySelector('.row.current.error').innerText")
    await tab.press("n")
    assert "Error" in await tab.value_of("document.querySelector('.row.current.error').innerText")
    await tab.press("p")
    assert "Traceback" in await tab.value_of("document.querySelector('.row.current.error').innerText")
    await tab.press("f")
    assert await tab.value_of("document.activeElement.name") == "filter"


async def test_a_line_far_down_is_found_by_its_anchor_alone(tab: Tab, site: str) -> None:
    await tab.open(f"{site}{LOG}&file={NAMES['long']}#L51234")
    await tab.shows_now(["line 51234"])
    assert await tab.value_of("document.querySelector('.row:target').id") == "L51234"


async def test_errors_are_jumped_to_over_parts_of_the_file(tab: Tab, site: str) -> None:
    await tab.open(f"{site}{LOG}&file={NAMES['long']}")
    await tab.shows_now(["line 1"])
    await tab.click("First error", "a")
    await tab.shows_now(["broke at 20000"])
    await tab.click("Next error", "a")
    await tab.shows_now(["broke at 40000"])
    assert "broke at 40000" in await tab.value_of("document.querySelector('.row.here').innerText")


async def test_lines_are_filtered_while_one_types_and_in_the_whole_file_by_enter(tab: Tab, site: str) -> None:
    await tab.open(f"{site}{LOG}&file={NAMES['long']}")
    await tab.shows_now(["line 1"])
    await tab.run(
        "const box = document.querySelector('input[name=filter]'); box.focus(); box.value = 'LINE 7';"
        "box.dispatchEvent(new Event('input'))"
    )
    await tab.shows_now(["11 of 400 lines here"])
    await tab.run("box.value = 'BROKE'")
    await tab.press("Enter")
    await tab.shows_now(["2 lines with “BROKE”", "broke at 40000"])


async def test_a_log_that_cannot_be_followed_says_so(tab: Tab, site: str, store: Path) -> None:
    await put_beat(local_store(store), session=LIVE)
    await tab.open(f"{site}{LOG}&file={NAMES['live']}")
    await tab.shows_now(["Following: new lines appear here."])
    button = "document.querySelector('[data-follows]')"
    await tab.run(f"{button}.click(); {button}.dataset.follows = '/nosuch'; {button}.click()")
    await tab.shows_now(["Not following: the server refused."])
    assert await tab.value_of(f"{button}.textContent") == "Follow"


async def test_rows_stay_when_lines_are_numbered_while_a_log_is_followed(tab: Tab, site: str, store: Path) -> None:
    await put_beat(local_store(store), session=LIVE)
    await tab.run_first(
        "document.onreadystatechange = () => { document.querySelector('.log').dataset.counting = '' };"
        "window.fetch = async () => new Response('<div class=log>counted</div>')"
    )
    await tab.open(f"{site}{LOG}&file={NAMES['live']}")
    await tab.shows_now(["begun", "Stop following"])
    await tab.value_of("new Promise(done => setTimeout(done, 2000))")  # later than what the page itself has waited for
    assert "begun" in await tab.text()


async def test_a_live_log_grows_on_the_page_and_stops_with_its_session(
    tab: Tab, site: str, store: Path, shots: Path
) -> None:
    kept = local_store(store)
    await put_beat(kept, session=LIVE)
    await tab.open(f"{site}{LOG}&file={NAMES['live']}")
    await tab.shows_now(["begun", "Stop following"])
    packs = PackBuilder(kept, session=LIVE, sequence=7)
    packs.add(NAMES["live"], f"grown {EVIL}\nERROR late\n".encode(), offset=len("\x1b[36mbegun\x1b[0m\n") + 35)
    await packs.put()
    await tab.shows_now(["grown <script>", "ERROR late"])
    assert await tab.value_of("document.querySelectorAll('.row.error').length") == 2
    assert await tab.value_of("document.querySelector('.row:last-child').id") == "L6"
    await install_axe(tab)
    for width, scheme in LOOKS:
        await tab.look_as(width, scheme)
        await tab.screenshot(shots / f"log-live-{width}-{scheme}.png", is_whole=True)
        assert [*await barriers_of(tab), *await overflow_of(tab)] == []
    await put_end(kept, session=LIVE)
    await tab.shows_now(["The session ended: this is all of the log."])
    assert await tab.value_of("window.hacked ?? null") is None


async def test_hostile_names_and_lines_do_nothing(tab: Tab, site: str) -> None:
    for query in ("", "&filter=script", "&error=0"):
        await tab.open(
            f"{site}{LOG}&file={NAMES['evil'].replace('<', '%3C').replace('>', '%3E').replace(' ', '%20')}{query}"
        )
        await tab.shows_now(["window.hacked = 1"])
        assert await tab.value_of("window.hacked ?? null") is None
        assert await tab.value_of("document.querySelectorAll('main script, main img').length") == 0


async def test_a_report_is_copied_as_markdown(tab: Tab, site: str, store: Path) -> None:
    await tab.open(site + job(store, "named-trainer"))
    await tab.shows(["Copy as Markdown"])
    await tab.run("navigator.clipboard.writeText = async text => { window.copied = text }")
    await tab.click("Copy as Markdown", "a")
    await tab.shows(["Copied"])
    copied = await tab.value_of("window.copied")
    assert copied.startswith("### failed: named\\_trainer.py, job nightly of recorded/named-trainer/")
    assert "**CUDA error: out of memory while allocating 4.00 GiB**" in copied
