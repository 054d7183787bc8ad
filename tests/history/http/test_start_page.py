"""The way into a session: the list of sessions, KubeRay's routes and cookies, paths."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest

from raykeeper.history.settings import AccessSettings
from raykeeper.layout.keys import CatalogKey, SessionId
from raykeeper.layout.records import encode_record
from raykeeper.layout.summaries import HeadlineSummary, JobSummary, SessionSummary
from support.asking import Answered, ask
from support.history_scene import (
    SESSION,
    STARTED_AT,
    Scene,
    a_scene,
    put_beat,
    put_session,
    session_url,
)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return a_scene(tmp_path)


def links(page: Answered) -> list[str]:
    return [unescape(link) for link in re.findall(r'href="([^"]*)"', page.text)]


def cookies_of(answered: Answered) -> str:
    """As a browser sends them back; `ask` keeps the last one of repeated headers, so they are asked apart."""
    return answered.headers["set-cookie"]


async def test_the_start_page_lists_sessions_with_their_states_and_links(scene: Scene) -> None:
    ended = SessionId("team-b", "old", "session_1")
    await put_session(scene.store, ended, started_at=STARTED_AT - timedelta(days=1), ended_at=STARTED_AT)
    unheard = SessionId("team-b", "lost", "session_2")
    await put_session(scene.store, unheard, started_at=STARTED_AT - timedelta(hours=1))
    await put_session(scene.store)
    await put_beat(scene.store)
    page = await ask(scene.app, "/sessions")
    assert page.status == 200
    assert re.findall(r'class="badge \w+">([\w ]+)<', page.text) == ["Running", "unknown", "Not read yet"]
    assert [link for link in links(page) if link.startswith("/s/")] == [
        f"{session_url(id_)}/{name}" for id_ in (SESSION, unheard, ended) for name in ("overview", "report", "")
    ]


async def test_old_addresses_of_the_list_of_sessions_lead_to_it(scene: Scene) -> None:
    for query in ("namespace=team-a&cluster=train", "after=x", "limit=20", "since=yesterday"):
        moved = await ask(scene.app, f"/?{query}")
        assert (moved.status, moved.headers["location"]) == (302, f"/sessions?{query}")
    assert (await ask(scene.app, "/?namespace=")).status == 200, "an empty filter is none"
    assert (await ask(scene.app, "/?utm_source=mail")).status == 200


async def test_a_session_is_listed_with_how_it_went_and_why(scene: Scene) -> None:
    await put_session(scene.store, ended_at=STARTED_AT + timedelta(hours=1))
    jobs = (JobSummary(status="FAILED", outcome="failed"), JobSummary(status="SUCCEEDED", outcome="ok"))
    headline = HeadlineSummary(text="KeyError: 'lr'", what="task step", where="main.py:7")
    summary = SessionSummary(version=4, as_of=STARTED_AT, outcome="failed", headline=headline, jobs=jobs)
    await scene.store.put(CatalogKey(STARTED_AT.date(), SESSION, "summary").key, encode_record(summary))
    [listed] = (await ask(scene.app, "/api/keeper/v1/sessions")).body["sessions"]
    told = {name: listed[name] for name in ("state", "outcome", "jobs", "failed_jobs")}
    assert told == {"state": "ended", "outcome": "failed", "jobs": 2, "failed_jobs": 1}
    assert listed["headline"] == {"text": "KeyError: 'lr'", "what": "task step", "where": "main.py:7"}
    page = (await ask(scene.app, "/sessions")).text
    assert '<span class="badge bad">Failed</span>' in page
    assert f'<a href="{session_url()}/report">KeyError: &#x27;lr&#x27;</a>' in page
    assert "1 failed" in page
    assert '">ended</span>' not in page, "that it is over says nothing"


async def test_the_start_page_goes_on_where_it_ended(scene: Scene) -> None:
    for number in range(51):
        session = SessionId("team-a", "train", f"session_{number:02d}")
        await put_session(scene.store, session, started_at=STARTED_AT + timedelta(minutes=number), ended_at=STARTED_AT)
    first = await ask(scene.app, "/sessions")
    [older] = [link for link in links(first) if link.startswith("/sessions?after=")]
    second = await ask(scene.app, older)
    assert [link for link in links(second) if link.endswith("/session_00/")] == ["/s/team-a/train/session_00/"]
    assert not any("session_01" in link for link in links(second))


async def test_the_list_is_narrowed_and_turned_round_by_its_address(scene: Scene) -> None:
    for number in range(4):
        session = SessionId("team-a" if number % 2 else "team-b", f"train-{number}", f"session_{number}")
        started_at = STARTED_AT + timedelta(days=number)
        await put_session(scene.store, session, started_at=started_at, ended_at=started_at if number < 2 else None)
    shown = {
        query: re.findall(r"/session_(\d)/overview", (await ask(scene.app, f"/sessions?{query}")).text)
        for query in (
            "namespace=team-a&cluster=",
            "since=2026-11-16&until=2026-11-17",
            "state=unknown",
            "text=TRAIN-2",
            "order=oldest&state=ended",
        )
    }
    assert list(shown.values()) == [["3", "1"], ["2", "1"], ["3", "2"], ["2"], ["0", "1"]]


async def test_a_narrowed_list_is_paged_within_what_is_wanted(scene: Scene) -> None:
    for number in range(60):
        session = SessionId(f"team-{number % 2}", "train", f"session_{number:02d}")
        await put_session(scene.store, session, started_at=STARTED_AT + timedelta(minutes=number), ended_at=STARTED_AT)
    first = await ask(scene.app, "/sessions?namespace=team-1&limit=20")
    [older] = [link for link in links(first) if "after=" in link]
    second = await ask(scene.app, older)
    assert len(re.findall(r"/overview", second.text)) == 10
    assert "/s/team-0/" not in second.text
    assert 'value="team-1"' in second.text, "the form shows what is asked for"


async def test_what_cannot_be_asked_is_told_on_a_page(scene: Scene) -> None:
    page = await ask(scene.app, "/sessions?since=yesterday")
    assert page.status == 400
    assert "Parameter &#x27;since&#x27;" in page.text


async def test_an_empty_store_and_a_wrong_place_have_pages_too(scene: Scene) -> None:
    for path, words in (("/sessions", "no sessions yet"), ("/", "no jobs yet")):
        page = (await ask(scene.app, path)).text
        assert words in page
        assert "<code>raykeeper demo</code>" in page, "it says what to do next"
    assert (await ask(scene.app, "/sessions?after=%3Cscript%3E")).status == 400
    assert "<script>" not in (await ask(scene.app, "/sessions?after=%3Cscript%3E")).text


async def test_names_in_a_bucket_cannot_write_html(scene: Scene) -> None:
    await put_session(scene.store, SessionId("n", '<img src=x onerror="alert(1)">', 'session_"><script>'))
    page = await ask(scene.app, "/sessions")
    assert "<img" not in page.text
    assert page.text.count("<script") == 2  # the page's own
    assert "default-src 'none'" in page.headers["content-security-policy"]


async def test_the_page_warns_where_everybody_may_read(tmp_path: Path) -> None:
    open_scene = a_scene(tmp_path, access=AccessSettings("none", is_undecided=True))
    for path in ("/", "/sessions"):
        assert "Whoever reaches this address" in (await ask(open_scene.app, path)).text


async def test_clusters_are_listed_in_kuberays_words(scene: Scene) -> None:
    await put_session(scene.store, owner=("RayJob", "nightly"))
    answered = await ask(scene.app, "/clusters")
    assert answered.body == [
        {
            "name": "train",
            "namespace": "team-a",
            "sessionName": SESSION.session,
            "createTime": "2026-11-15T20:00:00Z",
            "createTimeStamp": 1794772800,
            "ownerKind": "rayjob",
            "ownerName": "nightly",
        }
    ]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("raycluster/train", "train"),
        ("raycluster/train/latest", "train"),
        (f"raycluster/train/{SESSION.session}", "train"),
        ("rayjob/nightly", "nightly"),
        (f"rayjob/nightly/{SESSION.session}", "nightly"),
    ],
)
async def test_entering_a_cluster_answers_as_kuberay_does(scene: Scene, path: str, name: str) -> None:
    await put_session(scene.store, owner=("RayJob", "nightly"))
    answered = await ask(scene.app, f"/enter_cluster/team-a/{path}")
    assert answered.body == {"result": "success", "name": name, "namespace": "team-a", "session": SESSION.session}
    assert "Max-Age=600" in cookies_of(answered)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("team-a/raycluster/other", 404),
        ("team-b/raycluster/train", 404),
        ("team-a/raycluster/train/session_2026-11-15_20-00-00_000001_9", 404),
        ("team-a/raycluster/train/session_nope", 400),
        ("team-a/rayjob/other", 404),
        ("team-a/pod/train", 400),
        ("team-a/raycluster/..%2F..", 400),
        ("..%2F../raycluster/train", 400),
    ],
)
async def test_what_is_not_there_cannot_be_entered(scene: Scene, path: str, status: int) -> None:
    await put_session(scene.store)
    assert (await ask(scene.app, f"/enter_cluster/{path}")).status == status


@pytest.mark.parametrize("word", ["live", "latest"])
async def test_a_cookie_may_say_which_session_without_its_name(scene: Scene, word: str) -> None:
    await put_session(scene.store)
    cookie = f"cluster_name=train; cluster_namespace=team-a; session_name={word}"
    answered = await ask(scene.app, "/api/version", headers={"Cookie": cookie})
    assert answered.body["session_name"] == SESSION.session


async def test_cookies_choose_the_session_of_the_same_api(scene: Scene) -> None:
    await put_session(scene.store)
    cookie = f"cluster_name=train; cluster_namespace=team-a; session_name={SESSION.session}"
    by_cookie = await ask(scene.app, "/api/version", headers={"Cookie": cookie})
    by_path = await ask(scene.app, f"{session_url()}/api/version")
    assert by_cookie.body == by_path.body
    assert by_cookie.body["session_name"] == SESSION.session
    assert "Max-Age=600" in by_cookie.headers["set-cookie"]


@pytest.mark.parametrize(
    "cookie",
    [
        "",
        "cluster_name=train; cluster_namespace=team-a",
        f"cluster_namespace=team-a; session_name={SESSION.session}",
        f"cluster_name=; cluster_namespace=team-a; session_name={SESSION.session}",
    ],
)
async def test_a_missing_cookie_is_said(scene: Scene, cookie: str) -> None:
    await put_session(scene.store)
    answered = await ask(scene.app, "/nodes?view=summary", headers={"Cookie": cookie} if cookie else {})
    assert answered.status == 400
    assert "enter_cluster" in answered.text


@pytest.mark.parametrize("name", ["..", "../..", "team-a/train", "%2e%2e", "\\..\\", "a\x00b"])
async def test_cookies_lead_to_no_other_objects(scene: Scene, name: str) -> None:
    await put_session(scene.store)
    cookie = f"cluster_name={name!a}; cluster_namespace={name!a}; session_name={name!a}"
    assert (await ask(scene.app, "/api/version", headers={"Cookie": cookie})).status == 404


@pytest.mark.parametrize("word", ["latest", "live"])
async def test_latest_leads_to_the_session_that_started_last(scene: Scene, word: str) -> None:
    older = SessionId("team-a", "train", "session_9999")
    await put_session(scene.store, older, started_at=STARTED_AT - timedelta(days=1))
    await put_session(scene.store)
    for rest in ("", "/", "/api/v0/tasks?limit=5&detail=1"):
        answered = await ask(scene.app, f"/s/team-a/train/{word}{rest}")
        assert answered.status == 302
        assert answered.headers["location"] == f"{session_url()}{rest or '/'}"
    assert (await ask(scene.app, f"/s/team-a/other/{word}/")).status == 404


async def test_a_session_that_is_not_there_is_not_found(scene: Scene) -> None:
    answered = await ask(scene.app, "/s/team-a/train/session_nope/api/version")
    assert (answered.status, answered.text) == (404, "there is no session team-a/train/session_nope")


async def test_every_answer_about_a_session_says_how_fresh_it_is(scene: Scene) -> None:
    await put_session(scene.store)
    answered = await ask(scene.app, f"{session_url()}/api/version")
    assert answered.headers["x-raykeeper-as-of"] == "2026-11-15T20:00:00+00:00"


async def test_health_and_metrics_are_answered(scene: Scene) -> None:
    await ask(scene.app, f"{session_url()}/api/version")
    assert [(await ask(scene.app, path)).text for path in ("/readz", "/livez")] == ["ok", "ok"]
    metrics = (await ask(scene.app, "/metrics")).text
    assert 'raykeeper_history_requests_total{route="/api/version",status="404"} 1.0' in metrics


async def test_what_no_route_answers_is_ray_s_not_found(scene: Scene) -> None:
    await put_session(scene.store)
    for path in ("/nope", f"{session_url()}/api/nope", f"{session_url()}/api/v0/tasks/"):
        answered = await ask(scene.app, path)
        assert (answered.status, answered.text) == (404, "404: Not Found")
    assert (await ask(scene.app, f"{session_url()}/api/version", method="POST")).status == 405
