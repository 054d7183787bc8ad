"""Our bar in Ray's dashboard: why it ended and the ways back, by mouse and keyboard, without harm to Ray's own page."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import msgspec
import pytest

from history.browser.dead_session import serving_process
from history.browser.pages import JOB
from history.browser.tab import PAGE_SECONDS, Tab
from history.browser.verdict import faults_of
from raykeeper.layout.keys import PolledKey, end_record_key
from raykeeper.layout.polled import encode_polled
from raykeeper.layout.records import EndRecord, PolledAnswer, encode_record
from support.conditions import eventually
from support.history_scene import local_store
from support.raycapture import HEAD, NODES, SESSION

pytestmark = pytest.mark.bed

ENDED_AT = datetime(2026, 11, 15, 21, tzinfo=UTC)
SERVE = "/api/serve/applications/"
BAR = "document.querySelector('#raykeeper-bar')"


async def end_session(store: Path) -> None:
    """Its nodes ended as they should, and Serve was shut down before."""
    objects = local_store(store)
    for node in NODES:
        end = EndRecord(
            node_id=node.node_id, role=node.folder, ended_at=ENDED_AT, reason="terminated", is_complete=True
        )
        await objects.put(end_record_key(SESSION, node.node_id), encode_record(end))
    now = datetime.now(UTC)
    nothing = msgspec.Raw(b'{"controller_info": {}, "proxies": {}, "applications": {}, "target_capacity": null}')
    answer = PolledAnswer(path=SERVE, polled_at=now, status=200, body=nothing)
    await objects.put(PolledKey(SESSION, SERVE, int(now.timestamp() * 1000)).key, encode_polled(answer))


@pytest.fixture(scope="module")
def ended_url(dead_store: Path, server_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    store = tmp_path_factory.mktemp("ended") / "store"
    shutil.copytree(dead_store, store)
    asyncio.run(end_session(store))
    with serving_process(store, server_folder / "ended") as url:
        yield url


async def test_the_bar_says_why_and_leads_back(tab: Tab, ended_url: str, pictures: Path) -> None:
    async with aiohttp.ClientSession() as http:

        async def is_summed_up() -> bool:
            async with http.get(f"{ended_url}overview"), http.get(ended_url) as answer:
                return "Why: " in await answer.text()

        await eventually(is_summed_up, seconds=PAGE_SECONDS)
    await tab.look_as(1400, "light")
    await tab.open(f"{ended_url}#/jobs/{JOB}")
    await tab.shows(["History of", "ended 2026-11-15 21:00:00 UTC", "Why: ", "All jobs"])
    await tab.screenshot(pictures / "bar.png")
    assert await tab.value_of(f"{BAR}.getBoundingClientRect().height") == 34
    assert await tab.value_of("document.documentElement.scrollWidth <= innerWidth")
    assert await tab.value_of(f"[...{BAR}.querySelectorAll('a:not([hidden])')].every(link => link.tabIndex === 0)")
    assert faults_of(tab.traffic, ended_url) == []
    await tab.click("Job", "#raykeeper-bar a")
    await tab.shows(["Why it failed"])
    assert f"/job/{JOB}" in await tab.address()


async def test_the_bar_fits_a_phone(tab: Tab, ended_url: str, pictures: Path) -> None:
    await tab.look_as(390, "dark")
    await tab.open(f"{ended_url}#/overview")
    await tab.shows(["Raykeeper", "All jobs"])
    await tab.screenshot(pictures / "bar-390.png")
    assert await tab.value_of(f"{BAR}.scrollWidth <= {BAR}.clientWidth")


async def test_the_logs_tab_lists_nodes_that_are_gone(tab: Tab, ended_url: str, pictures: Path) -> None:
    await tab.open(f"{ended_url}#/logs")
    await tab.click(f"Node ID: {HEAD.node_id} (IP: {HEAD.ip})", "a")
    await tab.click("job-driver-golden-fail.log", "a")
    await tab.shows(["job_fail: raising"])
    await tab.screenshot(pictures / "logs-of-dead-nodes.png")
    assert faults_of(tab.traffic, ended_url) == []


async def test_the_serve_tab_shows_what_served_before_it_was_shut_down(tab: Tab, ended_url: str) -> None:
    await tab.open(f"{ended_url}#/serve")
    await tab.shows(["hello_app"])


async def test_durations_stop_at_the_end_of_the_session(tab: Tab, ended_url: str, pictures: Path) -> None:
    async with aiohttp.ClientSession() as http, http.get(f"{ended_url}api/serve/applications/") as answer:
        [app] = [one for name, one in (await answer.json())["applications"].items() if name == "hello_app"]
    ran = ENDED_AT.timestamp() - app["last_deployed_time_s"]
    await tab.open(f"{ended_url}#/serve")
    await tab.shows(["hello_app"])
    row = "[...document.querySelectorAll('tr')].find(row => row.innerText.includes('hello_app')).innerText"
    shown = str(await tab.value_of(row))
    assert f"{int(ran // 60)}m {int(ran % 60)}s" in shown
    await tab.run("window.began = performance.now()")

    async def has_been_a_while() -> bool:
        return bool(await tab.value_of("performance.now() - window.began > 3000"))

    await eventually(has_been_a_while, seconds=PAGE_SECONDS)
    assert await tab.value_of(row) == shown, "Ray's page renews durations every second"
    assert await tab.value_of(
        "Date.now() - new Date() > 0 && new Date(5).getTime() === 5 && new Date() instanceof Date"
    )
    await tab.screenshot(pictures / "serve-after-the-end.png")
    assert faults_of(tab.traffic, ended_url) == []


async def test_the_cluster_tab_calls_no_worker_of_a_dead_node_alive(ended_url: str) -> None:
    async with aiohttp.ClientSession() as http:

        async def workers(query: str) -> list[object]:
            async with http.get(f"{ended_url}nodes/{HEAD.node_id}{query}") as answer:
                return list((await answer.json())["data"]["detail"]["workers"])

        assert await workers("?keeper=cluster") == []
        shown = await workers("")
    assert shown, "the page of the node itself has them"
    assert all(worker["cmdline"][0].startswith("ray::") for worker in shown if isinstance(worker, dict))
