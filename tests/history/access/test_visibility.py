"""Three users, three namespaces, every route: who may not see a namespace is answered as if it had never been there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, get_args
from urllib.parse import quote

import pytest
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.types import ASGIApp, Message

from raykeeper.history.failures.notes import read_note
from raykeeper.history.http.access.callers import Caller, Verdict
from raykeeper.history.http.app import make_app, make_routes
from raykeeper.history.http.keeper_api.operation import PREFIX
from raykeeper.history.http.pages.assets import ASSETS_ROUTE
from raykeeper.history.http.ray_api.metrics import GRAFANA_PATH
from raykeeper.history.http.routing import SESSION_PATH, session_cookies
from raykeeper.history.program import open_history
from raykeeper.history.query.history import History
from raykeeper.history.retention.usage import write_usage
from raykeeper.history.settings import (
    AccessSettings,
    CacheSettings,
    GrafanaSettings,
    HistorySettings,
    HistoryStoreSettings,
)
from raykeeper.history.urls import JobTab
from raykeeper.history.visibility import EVERYTHING, Visibility
from raykeeper.layout.retention import NamespaceUsage, Usage
from raykeeper.storage.settings.urls import parse_store_url
from support.asking import Answered, ask
from support.ingest_scene import HEAD, local_store, task_id
from support.three_teams import (
    GHOST,
    LOG,
    LOG_GENERATION,
    TEAMS,
    LiveTeams,
    copy_without_others,
    job_of,
    put_team,
    read_all,
    session_of,
)

OPEN = ("/readz", "/livez", "/metrics", ASSETS_ROUTE)
"""Routes that tell nothing of any session; what is in them is tested by itself."""
USERS = {
    "alice": {"teamred"},
    "bob": {"teamblue", "teamgreen"},
    "carol": set[str](),
}
ASKED_ABOUT = {"alice": ("teamred", "teamblue"), "bob": ("teamblue", "teamred"), "carol": ("teamred",)}
"""Their own namespace, and one that they may not see."""
ADMIN = "admin"
_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")


class ByHeader:
    """Believes whoever says who they are."""

    own_paths: frozenset[str] = frozenset()

    async def answer(self, request: Request) -> Response:
        raise NotImplementedError(request.url.path)

    async def check(self, connection: HTTPConnection) -> Verdict:
        user = connection.headers["x-test-user"]
        visibility = EVERYTHING if user == ADMIN else Visibility(frozenset(USERS[user]))
        return Verdict(Caller("", visibility))


@dataclass(frozen=True)
class Asked:
    """One request: a route with its names filled in."""

    path: str
    method: str
    cookies: str
    route: str = ""

    @property
    def headers(self) -> dict[str, str]:
        return {"Cookie": self.cookies} if self.cookies else {}


def table_of_routes(routes: list[BaseRoute], prefix: str = "") -> Iterator[tuple[str, BaseRoute]]:
    """Every path that the application itself knows, with its prefix."""
    for route in routes:
        if isinstance(route, Mount):
            yield from table_of_routes(list(route.routes), prefix + route.path)
        elif isinstance(route, Route | WebSocketRoute):
            yield prefix + route.path, route


FINGERPRINTS: dict[str, str] = {}
"""Of the failure that each team alone has, as its summary says it."""
TASK = task_id(1)
UNANSWERED = {
    "/failures/{fingerprint}/note": "notes are written with a body",
    f"{SESSION_PATH}/{{path:path}}": "there are no files of Ray's dashboard here",
    f"{SESSION_PATH}/api/{{path:path}}": "no path of Ray's",
    f"{SESSION_PATH}/api/v0/platform_events": "Ray's own answer where nothing collects them",
    f"{SESSION_PATH}/api/train/v2/runs": "Ray Train never ran",
    f"{SESSION_PATH}/api/train/v2/runs/v1": "Ray Train never ran",
    "/api/{path:path}": "no path of Ray's",
    "/api/v0/platform_events": "Ray's own answer where nothing collects them",
    "/api/v0/platform_events/": "Ray's own answer where nothing collects them",
    "/api/train/v2/runs": "Ray Train never ran",
    "/api/train/v2/runs/": "Ray Train never ran",
    "/api/train/v2/runs/v1": "Ray Train never ran",
    "/api/train/v2/runs/v1/": "Ray Train never ran",
}
"""Routes that have no answer in this store, whoever asks, and why. Every other one answers who may see the team."""


def names_of(team: str) -> dict[str, str]:
    """What can stand in the braces of a route. A route with a new name in braces fails here until it is added."""
    session = session_of(team)
    return {
        "namespace": team,
        "cluster": session.cluster,
        "session": session.session,
        "name": session.cluster,
        "kind": "raycluster",
        "rayjob": f"{team}-refused",
        "job": job_of(team),
        "job_id": "01000000",
        "job_or_submission_id": job_of(team),
        "node_id": HEAD,
        "node": HEAD,
        "actor_id": "ee" * 12 + "01000000",
        "fingerprint": FINGERPRINTS.get(team, f"{team}-no-fingerprint"),
        "media_type": "file",
        "path": "",
        "rest": "overview",
        "task": TASK,
        "task_id": TASK,
        "attempt": "0",
        "query": "",
        "file": "keeper.css",
    }


def names_in(path: str, team: str) -> Iterator[dict[str, str]]:
    """All that a route can be asked about: every tab, and of clusters one that never started."""
    names = names_of(team)
    if f"/{GRAFANA_PATH}/" in path:
        names["path"] = "d/rayDefaultDashboard"
    if "/clusters/{namespace}/{cluster}" in path:
        names["cluster"] = f"{team}-unborn"
    tabs = [tab for tab in get_args(JobTab) if tab] if "{tab}" in path else [""]
    yield from (names | {"tab": tab} for tab in tabs)


def queries_of(path: str, team: str) -> Sequence[str]:
    """Queries with which a route tells most."""
    session = session_of(team)
    run = quote(f"{team}/{session.cluster}/{session.session}/{job_of(team)}", safe="")
    is_of_session = "{session}" in path or path.startswith(f"{PREFIX}/jobs/{{job}}")
    everywhere = ["", f"namespace={team}", f"text={team}", "text=needle"]
    log = f"node={HEAD}&file={LOG}"
    known: dict[str, Sequence[str]] = {
        f"{PREFIX}/compare": [f"a={run}&b={run}"],
        "/compare": [f"a={run}&b={run}", f"a={run}"],
        "/search": [
            "text=needle",
            "text=needle&kind=log",
            *([] if is_of_session else [f"text=needle&namespace={team}"]),
        ],
        "/sessions": everywhere,
        "/jobs": [""] if is_of_session else everywhere,
        "/failures": everywhere,
        "/jobs/{job}/log": ["", "search=needle"],
        "/log": [log, f"{log}&filter=needle"],
        "/log/of": [f"task={TASK}"],
        "/log/tail": [f"{log}&generation={LOG_GENERATION}"],
        "/logs": [f"node_id={HEAD}"] if "/v0/" in path else [""],
        "/logs/{media_type}": [f"node_id={HEAD}&filename={LOG}&lines=10", f"node_id={HEAD}&pid=7"],
        "/nodes": ["view=summary", "view=hostNameList"],
    }
    asked = path.rstrip("/")
    return next((known[end] for end in sorted(known, key=len, reverse=True) if asked.endswith(end)), [""])


def requests_about(routes: list[BaseRoute], team: str) -> Iterator[Asked]:
    cookies = "; ".join(f"{name}={value}" for name, value in session_cookies(session_of(team)).items() if value)
    for path, route in table_of_routes(routes):
        if not isinstance(route, Route) or path in OPEN:
            continue
        method = "POST" if "POST" in (route.methods or ()) else "GET"
        for names, query in product(names_in(path, team), queries_of(path, team)):
            filled = _PARAMETER.sub(lambda found: quote(names[found[1]], safe="/"), path)  # noqa: B023 - used at once
            yield Asked(f"{filled}?{query}" if query else filled, method, cookies, path)


@dataclass(frozen=True)
class Served:
    history: History
    app: ASGIApp

    async def answer(self, asked: Asked, user: str) -> Answered:
        return await ask(self.app, asked.path, method=asked.method, headers={**asked.headers, "X-Test-User": user})


@asynccontextmanager
async def serving(store: Path, cache: Path, teams: Collection[str] = TEAMS) -> AsyncIterator[Served]:
    """A server over a store, in whose Kubernetes these teams have clusters."""
    cache.mkdir()  # noqa: ASYNC240 - of a test
    url = store.as_uri()
    access = AccessSettings("token", "not-used-here-at-all")
    grafana = GrafanaSettings(host="http://grafana.example")
    settings = HistorySettings(HistoryStoreSettings(url), access=access, cache=CacheSettings(cache), grafana=grafana)
    async with open_history(settings, parse_store_url(url, {}), cache) as opened:
        history = replace(opened, live_objects=LiveTeams(frozenset(teams)))
        yield Served(history, make_app(history, authenticator=ByHeader()))


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The store of all, and for each user the one that would be left without the others' history."""
    folder = tmp_path_factory.mktemp("teams")
    whole = folder / "whole"
    asyncio.run(_fill(whole, folder / "cache"))
    found = {ADMIN: whole}
    for user, teams in USERS.items():
        found[user] = folder / f"only-{user}"
        copy_without_others(whole, found[user], teams)
    return found


async def _fill(folder: Path, cache: Path) -> None:
    store = local_store(folder)
    for team in TEAMS:
        await put_team(store, team)
    async with serving(folder, cache) as first:
        await read_all(first.history, store)
        for team in TEAMS:
            asked = Asked(f"{PREFIX}/failures?namespace={team}&text={team}-needle", "GET", "")
            [kind] = (await first.answer(asked, ADMIN)).body["failures"]
            FINGERPRINTS[team] = kind["fingerprint"]


def told(answered: Answered) -> tuple[int, str, str, str]:
    """What a client can tell two answers apart by."""
    shown = {name: answered.headers.get(name, "") for name in ("content-type", "location")}
    return answered.status, shown["content-type"], shown["location"], answered.content.decode(errors="replace")


async def test_no_route_tells_of_a_namespace_that_the_caller_may_not_see(
    stores: dict[str, Path], tmp_path: Path
) -> None:
    """After somebody who may see everything asked for all of it, so that whatever is remembered is remembered."""
    async with AsyncExitStack() as stack:
        whole = await stack.enter_async_context(serving(stores[ADMIN], tmp_path / "cache"))
        routes = list(make_routes(whole.history).routes)
        for team in TEAMS:
            for asked in requests_about(routes, team):
                await whole.answer(asked, ADMIN)
        leaks, compared = [], 0
        for user in USERS:
            alone = await stack.enter_async_context(serving(stores[user], tmp_path / f"cache-{user}", USERS[user]))
            for team in ASKED_ABOUT[user]:
                for asked in requests_about(routes, team):
                    with_others = told(await whole.answer(asked, user))
                    without = told(await alone.answer(asked, ADMIN))
                    compared += 1
                    if with_others != without:
                        leaks.append((user, asked.method, asked.path, with_others[0], without[0]))
    assert leaks == []
    assert compared > 5 * len(list(table_of_routes(routes)))


async def test_every_route_is_asked_what_it_can_answer(stores: dict[str, Path], tmp_path: Path) -> None:
    """Or the test above would compare two refusals, and never find a leak."""
    async with serving(stores[ADMIN], tmp_path / "cache") as whole:
        routes = list(make_routes(whole.history).routes)
        asked = list(requests_about(routes, "teamred"))
        answers = [(one, (await whole.answer(one, "alice")).status) for one in asked]
    refused = {(one.route, one.path, status) for one, status in answers if status >= 400}
    assert {one for one in refused if one[0] not in UNANSWERED} == set()
    assert {one[0] for one in refused} == set(UNANSWERED), "whatever has an answer now is none of these"


async def test_sizes_are_told_of_the_namespaces_that_the_caller_sees(stores: dict[str, Path], tmp_path: Path) -> None:
    copy_without_others(stores[ADMIN], tmp_path / "store", set(TEAMS))
    shown = tuple(NamespaceUsage(namespace=team, sessions=1, bytes=7) for team in TEAMS)
    rest = NamespaceUsage(namespace="(others)", sessions=5)
    usage = Usage(as_of=datetime.now(UTC), namespaces=shown, others=rest, left_out=3)
    await write_usage(local_store(tmp_path / "store"), usage)
    async with serving(tmp_path / "store", tmp_path / "cache") as whole:
        asked = Asked(f"{PREFIX}/storage", "GET", "")
        of_admin, of_alice = [(await whole.answer(asked, user)).body for user in (ADMIN, "alice")]
    assert [one["namespace"] for one in of_admin["namespaces"]] == list(TEAMS)
    assert [one["namespace"] for one in of_alice["namespaces"]] == ["teamred"]
    assert (of_alice["others"], of_alice["left_out"]) == (None, 0)


async def test_a_websocket_is_refused_as_for_a_session_that_is_not_there(
    stores: dict[str, Path], tmp_path: Path
) -> None:
    async with serving(stores[ADMIN], tmp_path / "cache") as whole:
        routes = list(make_routes(whole.history).routes)
        paths = [path for path, route in table_of_routes(routes) if isinstance(route, WebSocketRoute)]
        assert len(paths) == 2
        for path in paths:
            own, hidden, absent = [
                await opened_websocket(whole.app, path, team, "alice") for team in ("teamred", "teamblue", GHOST)
            ]
            assert own == ("websocket.accept", "")
            assert hidden[0] == "websocket.http.response.start"
            assert hidden[1].replace("teamblue", GHOST).replace("000008", "000009") == absent[1]


async def opened_websocket(app: ASGIApp, path: str, team: str, user: str) -> tuple[str, str]:
    """What came first, and the body of a refusal."""
    filled = _PARAMETER.sub(lambda found: names_of(team)[found[1]], path)
    cookies = "; ".join(f"{name}={value}" for name, value in session_cookies(session_of(team)).items() if value)
    sent: list[Message] = []
    incoming: list[Message] = [{"type": "websocket.connect"}, {"type": "websocket.disconnect", "code": 1000}]

    async def receive() -> Message:
        return incoming.pop(0) if incoming else {"type": "websocket.disconnect", "code": 1000}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"host", b"history"), (b"x-test-user", user.encode()), (b"cookie", cookies.encode())]
    scope = {"type": "websocket", "path": filled, "raw_path": filled.encode(), "query_string": b"", "headers": headers}
    extensions: dict[str, Any] = {"websocket.http.response": {}}
    await app({**scope, "root_path": "", "scheme": "ws", "subprotocols": [], "extensions": extensions}, receive, send)
    body = b"".join(message.get("body", b"") for message in sent if message["type"] == "websocket.http.response.body")
    return sent[0]["type"], body.decode()


async def test_a_note_is_read_by_those_who_may_see_what_its_author_saw(stores: dict[str, Path], tmp_path: Path) -> None:
    """All three teams have the same failure. A note of one says nothing to the others; one of an admin is for all."""
    copy_without_others(stores[ADMIN], tmp_path / "store", set(TEAMS))
    async with serving(tmp_path / "store", tmp_path / "cache") as whole:
        listed = (await whole.answer(Asked(f"{PREFIX}/failures", "GET", ""), ADMIN)).body["failures"]
        [shared] = [one["fingerprint"] for one in listed if one["cluster_count"] == len(TEAMS)]

        async def write(user: str, text: str) -> None:
            path, headers = f"/failures/{shared}/note", {"X-Test-User": user}
            answered = await ask(whole.app, path, method="POST", headers=headers, body=f"text={text}".encode())
            assert answered.status == 303, answered.text

        async def read(user: str) -> str:
            visibility = EVERYTHING if user == ADMIN else Visibility(frozenset(USERS[user]))
            note = await read_note(whole.history.seen_by(visibility), shared)
            return note.text if note else ""

        await write(ADMIN, "for-all")
        assert [await read(user) for user in (ADMIN, "alice", "bob")] == ["for-all"] * 3
        await write("alice", "of-red")
        assert [await read(user) for user in (ADMIN, "alice", "bob")] == ["of-red", "of-red", "for-all"]
        page = await whole.answer(Asked(f"/failures/{shared}", "GET", ""), "bob")
        assert "of-red" not in page.text
        assert "for-all" in page.text


async def test_metrics_have_no_name_of_any_session(stores: dict[str, Path], tmp_path: Path) -> None:
    async with serving(stores[ADMIN], tmp_path / "cache") as whole:
        for asked in requests_about(list(make_routes(whole.history).routes), "teamred"):
            await whole.answer(asked, "carol")
        metrics = await whole.answer(Asked("/metrics", "GET", ""), "carol")
        assert "raykeeper_history" in metrics.text
        assert not any(team in metrics.text for team in TEAMS)


async def test_the_place_where_a_list_goes_on_names_no_session(
    stores: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raykeeper.history.store.catalog.LOOKED_AT", 1)
    async with serving(stores[ADMIN], tmp_path / "cache") as whole:
        for order in ("newest", "oldest"):
            page = (await whole.answer(Asked(f"{PREFIX}/sessions?order={order}", "GET", ""), "carol")).body
            assert (page["sessions"], page["is_cut"]) == ([], True)
            assert not any(team in page["next"] for team in TEAMS)
            after = quote(page["next"])
            rest = (
                await whole.answer(Asked(f"{PREFIX}/sessions?order={order}&after={after}", "GET", ""), "carol")
            ).body
            assert (rest["sessions"], rest["next"]) == ([], None)
