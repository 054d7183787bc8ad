"""Our own pages in a real browser: nothing a person could stumble over, wide and narrow, light and dark."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import msgspec
import pytest

from bed.npm import npm_is_missing
from bed.waiting import wait_until
from history.browser.accessibility import barriers_of, install_axe, overflow_of
from history.browser.dead_session import put_dead_session, serving_process
from history.browser.inspecting import faults_on
from history.browser.own_pages import (
    FINGERPRINT,
    LONG_NAME,
    OWN_PAGES,
    PREFIX,
    REFUSED_RAYJOB,
    UNSTARTED,
    OwnPage,
)
from history.browser.tab import PAGE_SECONDS, Tab
from raykeeper.history.retention.usage import write_usage
from raykeeper.layout.keys import PolledKey, RayJobId, SessionId
from raykeeper.layout.polled import encode_polled
from raykeeper.layout.rayjobs import RayJobRecord, RayJobState
from raykeeper.layout.records import PolledAnswer, encode_record
from raykeeper.layout.retention import NamespaceUsage, Usage
from raykeeper.storage.store import ObjectStore
from recording.archives import ARCHIVES, unpack_into
from support.conditions import eventually
from support.history_scene import STARTED_AT, local_store, put_beat, put_session
from support.raycapture import RayCapture

SUMMED_UP_SECONDS = 180.0
pytestmark = [pytest.mark.bed, pytest.mark.skipif(npm_is_missing() is not None, reason=str(npm_is_missing()))]


@pytest.fixture(scope="module")
def own_store(raycapture: RayCapture, tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("own")
    asyncio.run(fill(raycapture, store))
    return store


@pytest.fixture(scope="module")
def site(own_store: Path, server_folder: Path) -> Iterator[str]:
    """The address of a server with the recorded session and others beside it."""
    with serving_process(own_store, server_folder / "own") as url:
        site = url.partition("/s/")[0]
        wait_until("the recorded session is summed up", lambda: _is_summed_up(site), SUMMED_UP_SECONDS)
        yield site


def _is_summed_up(site: str) -> bool:
    """Whether lists know of it all that they ever will."""
    with urllib.request.urlopen(f"{site}{PREFIX}/overview"):
        pass
    with urllib.request.urlopen(f"{site}/api/keeper/v1/failures") as answer:
        return bool(json.load(answer)["failures"])


async def fill(capture: RayCapture, folder: Path) -> None:
    await put_dead_session(capture, folder)
    unpack_into(folder, ARCHIVES / f"{UNSTARTED}.tar.zst")
    store = local_store(folder)
    for number in range(60):
        session = SessionId("team-a", f"train-{number % 7}", f"session_{number:05d}")
        started_at = STARTED_AT - timedelta(hours=number)
        await put_session(store, session, started_at=started_at, ended_at=started_at + timedelta(minutes=number))
    await put_session(store, SessionId(LONG_NAME, LONG_NAME, LONG_NAME), owner=("RayJob", LONG_NAME))
    state = RayJobState(at=STARTED_AT, deployment_status="ValidationFailed", message="spec.entrypoint is missing")
    id_ = RayJobId("team-a", REFUSED_RAYJOB, "uid-1")
    record = RayJobRecord(namespace="team-a", name=id_.rayjob, uid=id_.uid, states=(state,), created_at=STARTED_AT)
    await store.put(id_.key, encode_record(record))
    sizes = (NamespaceUsage(namespace="team-a", sessions=60, bytes=7_000_000_000, objects=9_000, oldest=STARTED_AT),)
    small = NamespaceUsage(namespace=LONG_NAME, sessions=1, unmeasured=1)
    await write_usage(store, Usage(as_of=datetime.now(UTC), namespaces=(*sizes, small)))


@pytest.mark.parametrize("page", OWN_PAGES, ids=lambda page: page.name)
async def test_a_page_has_no_barriers_no_errors_and_no_overflow(
    page: OwnPage, tab: Tab, site: str, shots: Path
) -> None:
    if FINGERPRINT in page.path:
        page = replace(page, path=page.path.replace(FINGERPRINT, _fingerprint(site)))
    assert await faults_on(page, tab, site, shots) == []


def _fingerprint(site: str) -> str:
    with urllib.request.urlopen(f"{site}/api/keeper/v1/failures?text=raising") as answer:
        [kind] = json.load(answer)["failures"]
    return str(kind["fingerprint"])


async def test_times_are_told_in_the_readers_zone_with_utc_at_hand(tab: Tab, site: str) -> None:
    await tab.open(f"{site}{PREFIX}/overview")
    await tab.shows(["Nodes over time"])

    async def title() -> str:
        return str(await tab.value_of("document.querySelector('dd time').title"))

    told = await eventually(title, seconds=PAGE_SECONDS)  # the words are there before the script runs
    assert told.startswith("2026-")
    assert " UTC (shown in " in told


async def test_how_long_ago_something_was_has_the_time_itself_at_hand(tab: Tab, site: str) -> None:
    await tab.open(f"{site}/sessions?cluster=train-1")
    await tab.shows(["train-1", " ago"])
    title = await tab.value_of("document.querySelector('tbody time').title")
    assert "2026-11-" in title
    assert "UTC)" in title


async def test_the_theme_is_switched_and_remembered(tab: Tab, site: str) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    await tab.look_as(1400, "light")
    await tab.open(f"{site}/sessions")
    await tab.shows(["train-1"])
    light = await tab.value_of(ground)
    await tab.click("Dark theme", "button")
    assert await tab.value_of(ground) != light
    await tab.open(f"{site}/compare")
    await tab.shows(["Run A"])
    assert await tab.value_of(ground) != light, "another page knows it too"
    await tab.click("Light theme", "button")
    assert await tab.value_of(ground) == light


async def test_the_search_box_is_one_key_away_and_finds(tab: Tab, site: str) -> None:
    await tab.open(f"{site}/sessions")
    await tab.shows(["train-1"])
    await tab.run("document.dispatchEvent(new KeyboardEvent('keydown', {key: '/', bubbles: true}))")
    assert await tab.value_of("document.activeElement.name") == "text"
    await tab.run("document.activeElement.value = 'RAISING'; document.activeElement.form.requestSubmit()")
    await tab.shows(["job_fail: raising"])


async def test_from_the_start_page_a_failure_is_two_clicks_from_its_cause(tab: Tab, site: str) -> None:
    await tab.open(site)
    await tab.shows(["job_fail.py"])
    await tab.run("document.querySelector('td.why a').click()")
    await tab.shows(["Root cause"])


async def put_job(store: ObjectStore, session: SessionId, status: str) -> None:
    """What the dashboard of a running session says about its only job."""
    now = datetime.now(UTC)
    ms = int(now.timestamp() * 1000)
    ray_job = {"submission_id": "live", "job_id": "01000000", "status": status, "entrypoint": "python live.py"}
    times = {"start_time": ms} if status == "RUNNING" else {"start_time": ms - 1000, "end_time": ms}
    answer = PolledAnswer(
        path="/api/jobs/", polled_at=now, status=200, body=msgspec.Raw(msgspec.json.encode([ray_job | times]))
    )
    await store.put(PolledKey(session, "/api/jobs/", ms).key, encode_polled(answer))


async def test_a_job_that_starts_appears_by_itself(tab: Tab, site: str, own_store: Path) -> None:
    await tab.open(f"{site}/jobs?cluster=just-now")
    await tab.shows(["There is no such job."])
    session = SessionId("team-a", "just-now", "session_live")
    store = local_store(own_store)
    await put_session(store, session, started_at=datetime.now(UTC))
    await put_beat(store, session=session)
    await put_job(store, session, "RUNNING")
    await tab.shows(["live.py", "Running"])


async def test_a_job_that_ends_before_the_first_look_is_shown(tab: Tab, site: str, own_store: Path) -> None:
    session = SessionId("team-a", "soon-over", "session_live")
    store = local_store(own_store)
    await put_session(store, session, started_at=datetime.now(UTC))
    await put_beat(store, session=session)
    await put_job(store, session, "RUNNING")
    await tab.run_first("Object.defineProperty(document, 'hidden', {get: () => !window.isLookedAt})")
    await tab.open(f"{site}/compare")
    await tab.shows(["Run A"])
    api = "fetch('/api/keeper/v1/jobs?cluster=soon-over').then(answer => answer.text())"

    async def is_known(outcome: str) -> bool:
        return f'"outcome":"{outcome}' in await tab.value_of(api)

    await eventually(partial(is_known, "running"), seconds=PAGE_SECONDS)
    await tab.open(f"{site}/jobs?cluster=soon-over")
    await tab.shows(["live.py"])
    await put_job(store, session, "SUCCEEDED")
    await eventually(partial(is_known, "ok"), seconds=PAGE_SECONDS)

    async def is_shown(word: str) -> bool:
        return word in await tab.value_of("document.querySelector('#list').innerText")

    assert await is_shown("Running"), "nobody has looked"
    await tab.run("window.isLookedAt = true")
    await eventually(partial(is_shown, "Succeeded"), seconds=PAGE_SECONDS)


async def test_the_page_of_a_running_job_updates_by_itself_until_the_job_ends(
    tab: Tab, site: str, own_store: Path
) -> None:
    session = SessionId("team-a", "at-work", "session_live")
    store = local_store(own_store)
    await put_session(store, session, started_at=datetime.now(UTC))
    await put_beat(store, session=session)
    await put_job(store, session, "RUNNING")
    await tab.open(f"{site}/s/team-a/at-work/session_live/job/live")
    await tab.shows(["live.py", "Runs for"])
    await tab.run("window.isTheSamePage = true")
    await put_job(store, session, "FAILED")

    async def has_ended() -> bool:
        head = await tab.value_of("document.querySelector('.job-head').innerText")
        return "Runs for" not in head and "failed" in head.lower()

    await eventually(has_ended, seconds=PAGE_SECONDS)
    assert await tab.value_of("window.isTheSamePage"), "nobody loaded it again"
    assert not await tab.value_of("!!document.querySelector('.job-head[data-live]')"), "it is asked for no longer"


async def test_a_table_is_narrowed_while_one_types(tab: Tab, site: str) -> None:
    await tab.open(f"{site}{PREFIX}/overview")
    await tab.shows(["golden-fail", "golden-main"])
    await tab.run(
        "const box = document.querySelector('input[data-narrows=jobs]'); box.value = 'golden-fail';"
        "box.dispatchEvent(new Event('input'))"
    )
    await tab.shows(["1 of "])
    assert (
        await tab.value_of("[...document.querySelector('#jobs').tBodies[0].rows].filter(row => !row.hidden).length")
        == 1
    )


async def test_the_address_of_a_report_is_copied(tab: Tab, site: str) -> None:
    await tab.open(f"{site}{PREFIX}/report")
    await tab.shows(["Copy link"])
    await tab.run("navigator.clipboard.writeText = async text => { window.copied = text }")
    await tab.click("Copy link", "button")
    await tab.shows(["Copied"])
    assert await tab.value_of("window.copied") == f"{site}{PREFIX}/report"


async def test_what_axe_finds_is_noticed(tab: Tab, site: str) -> None:
    await tab.open(f"{site}/sessions")
    await tab.shows(["train-1"])
    await tab.run("document.querySelector('main').insertAdjacentHTML('beforeend', '<input><div class=x>x</div>')")
    await tab.run("document.querySelector('.x').style.width = '9000px'")
    await install_axe(tab)
    found = " ".join([*await barriers_of(tab), *await overflow_of(tab)])
    assert "label: " in found
    assert "overflow: " in found


EMPTY_PAGES = (
    OwnPage("empty-home", "/", ("There are no jobs yet", "raykeeper demo")),
    OwnPage("empty-failures", "/failures", ("Nothing failed in 0 sessions",)),
    OwnPage("empty-sessions", "/sessions", ("There are no sessions yet", "raykeeper demo")),
)


@pytest.fixture(scope="module")
def empty_site(server_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving_process(tmp_path_factory.mktemp("empty"), server_folder / "empty") as url:
        yield url.partition("/s/")[0]


@pytest.mark.parametrize("page", EMPTY_PAGES, ids=lambda page: page.name)
async def test_a_page_of_an_empty_store_says_what_to_do_next(
    page: OwnPage, tab: Tab, empty_site: str, shots: Path
) -> None:
    assert await faults_on(page, tab, empty_site, shots) == []


@pytest.fixture(scope="module")
def guarded_site(server_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    secret = {"RAYKEEPER_AUTH": "token", "RAYKEEPER_AUTH_TOKEN": "t0ken-of-the-test"}
    with serving_process(tmp_path_factory.mktemp("guarded"), server_folder / "guarded", **secret) as url:
        yield url.partition("/s/")[0]


async def test_who_signs_in_sees_where_the_token_comes_from_and_then_the_jobs(
    tab: Tab, guarded_site: str, shots: Path
) -> None:
    page = OwnPage("login", "/login", ("Sign in to Raykeeper", "Where do I find the token?"), 401)
    assert await faults_on(page, tab, guarded_site, shots) == []
    await tab.run("document.querySelector('[name=token]').value = 't0ken-of-the-test'")
    await tab.click("Sign in", "button")
    await tab.shows(["There are no jobs yet"])
