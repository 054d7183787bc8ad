"""Ray's own dashboard, unchanged, in a real browser, on a session whose cluster is gone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import aiohttp
import pytest

from history.browser.dead_session import serving_process
from history.browser.pages import JOB, NO_METRICS, PAGES, TASK, TASK_STDOUT, UNMEASURED, Page
from history.browser.tab import Tab
from history.browser.verdict import RAYS_OWN_ERRORS, faults_of
from raykeeper.history.http.pages.dashboard_bar import BEGIN, END
from support.conditions import eventually
from support.raycapture import HEAD, MOMENTS, SESSION, RayCapture

pytestmark = pytest.mark.bed

OURS = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
GRAFANA = "http://127.0.0.1:3999"  # nobody listens there: what is looked at is where panels would come from


async def test_every_page_opens_without_an_error(tab: Tab, session_url: str, pictures: Path) -> None:
    faults = {page.name: await faults_on(page, tab, session_url, pictures) for page in PAGES}
    assert faults == {page.name: [] for page in PAGES}


async def test_pages_open_for_a_session_of_events_and_logs_alone(tab: Tab, unmeasured_url: str, pictures: Path) -> None:
    faults = {page.name: await faults_on(page, tab, unmeasured_url, pictures / "unmeasured") for page in UNMEASURED}
    assert faults == {page.name: [] for page in UNMEASURED}


async def test_the_frame_of_the_dashboard_is_the_one_that_ray_served(session_url: str, raycapture: RayCapture) -> None:
    for moment in MOMENTS:
        recorded = next(request for request in raycapture.requests(moment) if request.path == "/")
        async with aiohttp.ClientSession() as http, http.get(session_url) as answer:
            rays = OURS.sub("", await answer.text())
            assert (answer.status, rays) == (recorded.status, recorded.body)


async def faults_on(page: Page, tab: Tab, session_url: str, pictures: Path) -> list[str]:
    """What goes wrong until the page shows its words, in a tab that may have shown other pages before."""
    tab.traffic.forget()
    await tab.open(f"{session_url}#{page.route}")
    await tab.shows(page.words)
    await tab.screenshot(pictures / f"{page.name}.png")
    return faults_of(tab.traffic, session_url)


async def test_a_job_a_task_and_its_log_are_reached_by_clicking(tab: Tab, session_url: str, pictures: Path) -> None:
    await tab.open(session_url)
    await tab.click("Jobs", "a")
    await tab.click(JOB, "a")
    await tab.shows(["driver stdout: job id 02000000"])
    await tab.click("Task Table")
    await tab.click(TASK, "a")
    await tab.shows(["ok task stderr 1"])
    await tab.click("STDOUT", "button")
    await tab.shows([TASK_STDOUT])
    await tab.screenshot(pictures / "clicked-task-log.png")
    assert (await tab.address()) == f"{session_url}#/jobs/{JOB}/tasks/{TASK}"
    assert faults_of(tab.traffic, session_url) == []


async def test_a_log_file_is_reached_by_clicking(tab: Tab, session_url: str) -> None:
    await tab.open(session_url)
    await tab.click("Logs", "a")
    await tab.click(f"Node ID: {HEAD.node_id} (IP: {HEAD.ip})", "a")
    await tab.click("job-driver-golden-fail.log", "a")
    await tab.shows(["job_fail: raising"])
    assert faults_of(tab.traffic, session_url) == []


async def test_every_tab_of_a_node_opens(tab: Tab, session_url: str, pictures: Path) -> None:
    await tab.open(f"{session_url}#/cluster/nodes/{HEAD.node_id}")
    for title, words in (
        ("RAYLET", ("--raylet_socket_name=",)),
        ("WORKER (16)", ("Executed tasks: ", "ray::ServeController", "2026/11/15 20:12:27")),
        ("ACTOR (23)", ("to_be_killed",)),
    ):
        await tab.click(title, "button")
        await tab.shows(words)
        assert "1970" not in await tab.value_of("document.querySelector('#root').innerText")
        await tab.screenshot(pictures / f"node-{title.split()[0].lower()}.png")
    assert faults_of(tab.traffic, session_url) == []


async def test_every_tab_of_a_node_that_was_never_measured_opens(tab: Tab, unmeasured_url: str) -> None:
    await tab.open(f"{unmeasured_url}#/cluster/nodes/{HEAD.node_id}")
    for title, word in (
        ("RAYLET", "Node Manager Port"),
        ("WORKER (0)", "CPU Times"),
        ("ACTOR (23)", "to_be_killed"),
    ):
        await tab.click(title, "button")
        await tab.shows([word])
    assert faults_of(tab.traffic, unmeasured_url) == []


async def test_the_tables_of_a_job_unfold(tab: Tab, session_url: str) -> None:
    await tab.open(f"{session_url}#/jobs/{JOB}")
    await tab.click("Actor Table")
    await tab.shows(["to_be_killed"])
    await tab.click("Placement Group Table")
    await tab.shows(["pg_infeasible"])
    assert faults_of(tab.traffic, session_url) == []


@pytest.mark.parametrize(("page", "kind"), [("metrics", "d"), ("overview", "d-solo")])
async def test_metric_panels_show_the_past_session_at_its_time(
    page: str, kind: str, tab: Tab, dead_store: Path, server_folder: Path, pictures: Path
) -> None:
    with serving_process(dead_store, server_folder / f"metrics-{page}", RAY_GRAFANA_HOST=GRAFANA) as url:
        await tab.open(f"{url}#/{page}")

        async def asked_of_grafana() -> list[str]:
            return [one.url for one in tab.traffic.requests.values() if one.url.startswith(GRAFANA)]

        panels = await eventually(asked_of_grafana)
        await tab.screenshot(pictures / f"{page}-with-grafana.png")
        assert NO_METRICS not in await tab.text()
    assert panels
    for panel in panels:
        asked = dict(parse_qsl(urlsplit(panel).query))
        assert urlsplit(panel).path.startswith(f"/{kind}/")
        assert asked["var-SessionName"] == SESSION.session
        began, ended = (datetime.fromtimestamp(int(asked[name]) / 1000, UTC) for name in ("from", "to"))
        assert began.strftime("session_%Y-%m-%d") == SESSION.session[:18]
        assert timedelta(minutes=1) < ended - began < timedelta(hours=2)
        assert "refresh" not in asked


async def test_what_goes_wrong_on_a_page_is_noticed(tab: Tab, session_url: str) -> None:
    await tab.open(f"{session_url}#/overview")
    await tab.shows(["hello_app"])
    await tab.run("fetch('api/v0/nope'); fetch('/readz'); console.error('said'); setTimeout(() => { throw 'thrown' })")
    origin = session_url.partition("/s/")[0]

    async def all_noticed() -> bool:
        return len(tab.traffic.complaints) >= len(expected) and tab.traffic.is_quiet

    expected = {
        f"GET {session_url}api/v0/nope: 404",
        f"GET {origin}/readz leaves the session",
        "console: said",
        "console: Uncaught",
    }
    await eventually(all_noticed)
    faults = faults_of(tab.traffic, session_url)
    assert [wanted for wanted in expected if not any(fault.startswith(wanted) for fault in faults)] == []


def test_the_errors_that_are_excused_are_rays_own(raycapture: RayCapture) -> None:
    recorded = {(asked.method, asked.path.lstrip("/"), asked.status) for asked in raycapture.requests("final")}
    assert RAYS_OWN_ERRORS.keys() <= recorded
