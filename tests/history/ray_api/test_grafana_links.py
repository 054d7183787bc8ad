"""Ray's pages ask Grafana for the last minutes; a session that is over is shown at its own time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from starlette.types import ASGIApp

from raykeeper.history.http.app import make_app
from raykeeper.history.http.ray_api.metrics import at_time_of
from raykeeper.history.program import open_history
from raykeeper.history.settings import GrafanaSettings, HistorySettings, HistoryStoreSettings
from raykeeper.storage.settings.urls import parse_store_url
from support.asking import ask
from support.history_scene import local_store, put_beat, put_end, put_session, session_url

BEGAN = datetime(2026, 11, 15, 19, tzinfo=UTC)
ENDED = BEGAN + timedelta(hours=2)
SPAN = [("from", "1794769170000"), ("to", "1794776430000")]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ([("from", "now-5m"), ("to", "now"), ("refresh", "5s")], SPAN),
        ([("orgId", "1")], [("orgId", "1"), *SPAN]),
        ([("from", "1794770000000"), ("to", "now")], [("from", "1794770000000"), SPAN[1]]),
        ([("from", "1"), ("to", "2"), ("refresh", "")], [("from", "1"), ("to", "2"), ("refresh", "")]),
        ([("var-x", "a"), ("var-x", "b"), ("to", "now")], [("var-x", "a"), ("var-x", "b"), *SPAN]),
    ],
)
def test_a_time_that_counts_from_now_becomes_that_of_the_session(
    asked: list[tuple[str, str]], expected: list[tuple[str, str]]
) -> None:
    assert at_time_of(asked, BEGAN, ENDED) == expected


@asynccontextmanager
async def server(folder: Path, host: str, *, is_over: bool = True, port: int = 0) -> AsyncIterator[ASGIApp]:
    store, url = local_store(folder / "store"), f"file://{folder}/store"
    await put_session(store, started_at=BEGAN, ended_at=ENDED if is_over else None)
    await put_beat(store)
    if is_over:
        await put_end(store)
    grafana = GrafanaSettings(host, cluster_filter="prod", url="http://inside" if port else "", port=port)
    settings = HistorySettings(HistoryStoreSettings(url), grafana=grafana)
    async with open_history(settings, parse_store_url(url, {}), folder / "cache") as history:
        yield make_app(history)


async def host_told_by(app: ASGIApp) -> str:
    return str((await ask(app, f"{session_url()}/api/grafana_health")).body["data"]["grafanaHost"])


async def test_a_session_that_is_over_leads_to_grafana_with_its_name_cluster_and_time(tmp_path: Path) -> None:
    async with server(tmp_path, "http://grafana.example.com/base/") as app:
        way = f"{session_url()}/{await host_told_by(app)}/d/rayDefaultDashboard/?from=now-5m&to=now"
        answer = await ask(app, way)
    target = urlsplit(answer.headers["location"])
    asked = dict(parse_qsl(target.query))
    assert answer.status == 302
    assert f"{target.scheme}://{target.netloc}{target.path}" == "http://grafana.example.com/base/d/rayDefaultDashboard/"
    assert asked["from"] == SPAN[0][1]
    assert asked["var-SessionName"] == session_url().rpartition("/")[2]
    assert asked["var-Cluster"] == "prod"
    assert int(asked["to"]) > int(asked["from"])


async def test_a_running_session_and_grafanas_cloud_are_asked_directly(tmp_path: Path) -> None:
    async with server(tmp_path / "a", "http://grafana", is_over=False) as app:
        assert await host_told_by(app) == "http://grafana"
    async with server(tmp_path / "b", "https://me.grafana.net") as app:
        assert await host_told_by(app) == "https://me.grafana.net"


@pytest.mark.parametrize("path", ["logout", "api/admin/users", "//evil.example.com/d/x", "../d/x", "d/%0d%0aX", ""])
async def test_nothing_but_dashboards_is_linked(path: str, tmp_path: Path) -> None:
    async with server(tmp_path, "http://grafana") as app:
        answer = await ask(app, f"{session_url()}/grafana/{path}")
    assert answer.status == 404
    assert "location" not in answer.headers


@pytest.mark.parametrize("path", ["d/@evil.example.com/", "d/..//evil.example.com", "d/%3f%23"])
async def test_no_path_leads_to_another_server(path: str, tmp_path: Path) -> None:
    async with server(tmp_path, "http://grafana") as app:
        answer = await ask(app, f"{session_url()}/grafana/{path}")
    assert answer.headers["location"].startswith("http://grafana/d/")


@pytest.mark.parametrize(
    ("called", "expected"),
    [
        ("localhost:8080", "http://localhost:3000"),
        ("ray.example.com", "http://ray.example.com:3000"),
        ("[::1]:8080", "http://[::1]:3000"),
        ("[", "http://history:3000"),  # no name at all: that of the server
    ],
)
async def test_a_grafana_behind_our_second_address_is_found_under_the_name_by_which_we_are_called(
    called: str, expected: str, tmp_path: Path
) -> None:
    async with server(tmp_path, "", is_over=False, port=3000) as app:
        health = await ask(app, f"{session_url()}/api/grafana_health", headers={"Host": called})
        prometheus = await ask(app, f"{session_url()}/api/prometheus_health", headers={"Host": called})
    assert (health.status, health.body["data"]["grafanaHost"]) == (200, expected)
    assert prometheus.status == 200
