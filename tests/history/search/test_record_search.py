"""Errors and events are found in tables, jobs' messages and Kubernetes' words; sessions are searched newest first."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.types import ASGIApp

from raykeeper.history.http.app import make_app
from raykeeper.history.http.keeper_api.operation import PREFIX
from raykeeper.history.ingest.session import Session
from raykeeper.history.store.kube_facts import KubeFacts
from raykeeper.layout.keys import SessionId
from raykeeper.layout.kube_facts import EventFact
from support.asking import ask
from support.history_scene import STARTED_AT, PackBuilder, a_scene, put_session
from support.ingest_scene import SESSION, START_NS, Event
from support.overview_scene import asked_about, at
from support.planted_secrets import LINES, SECRETS
from support.report_scene import NODE, a_job, actor_died, failed, node_died, worker_died

PATH = f"{PREFIX}/sessions/{SESSION.namespace}/{SESSION.cluster}/{SESSION.session}/search"
BACK_OFF = EventFact(
    at=at(30),
    uid="e1",
    count=3,
    type="Warning",
    reason="BackOff",
    message="Back-off needle restarting",
    about_kind="Pod",
    about_name="train-worker-1",
)
EVENTS: list[Event] = [
    *(one for number in range(1, 6) for one in failed(number, "TASK_EXECUTION_EXCEPTION", "Traceback\n  needle\nend")),
    *failed(9, "WORKER_DIED", "Other needle", seconds=20, name="other"),
    *actor_died({"actorDiedErrorContext": {"errorMessage": 'actor "needle" died\nof age'}}, 15),
    worker_died("SYSTEM_ERROR", "worker needle lost", 12),
    *node_died("UNEXPECTED_TERMINATION", "node needle gone", 11),
]


class OneSession:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def open(self, session: SessionId) -> Session:
        return self._session


@asynccontextmanager
async def server(
    folder: Path, events: Iterable[Event], jobs: Sequence[Mapping[str, Any]] = (), kube: KubeFacts | None = None
) -> AsyncIterator[ASGIApp]:
    """A history server that knows one session with these events."""
    scene = a_scene(folder)
    await put_session(scene.store, SESSION)
    async with asked_about(folder, events, jobs=jobs, kube=kube) as asked:
        history = dataclasses.replace(
            scene.history,
            sessions=OneSession(asked.session),
            database=asked.database,
            kubernetes=asked.kubernetes,
        )
        yield make_app(history)


async def found(app: ASGIApp, path: str = PATH, **query: object) -> dict[str, Any]:
    answered = await ask(app, f"{path}?{urlencode({'seconds': 20, **query})}")
    assert answered.status == 200, answered.text
    body: dict[str, Any] = answered.body
    return body


async def test_errors_and_events_of_every_kind_are_found_newest_first(tmp_path: Path) -> None:
    job = a_job("FAILED", message="driver needle", end_time=START_NS // 1_000_000 + 5_000)
    async with server(tmp_path, EVENTS, [job], KubeFacts(events=(BACK_OFF,))) as app:
        body = await found(app, text="needle", context=1)
        errors = await found(app, text="needle", kind="error")
        of_node = await found(app, text="needle", node=NODE[:8])
        late = await found(app, text="needle", since=at(14).isoformat())
    hits = body["hits"]
    assert [hit["what"] for hit in hits] == ["Kubernetes", "task", "actor", "worker", "node", "task", "job"]
    assert [hit["count"] for hit in hits] == [3, 1, 1, 1, 1, 5, 1]
    assert hits[5]["title"] == "step: TASK_EXECUTION_EXCEPTION"
    assert [line["text"] for line in hits[5]["lines"]] == ["Traceback", "  needle", "end"]
    assert hits[2]["lines"][0]["text"] == 'actor "needle" died'
    assert [hit["what"] for hit in errors["hits"]] == ["task", "actor", "task", "job"]
    assert {hit["what"] for hit in of_node["hits"]} == {"task", "node"}
    assert [hit["what"] for hit in late["hits"]] == ["Kubernetes", "task", "actor"]


async def test_pages_of_records_follow_each_other(tmp_path: Path) -> None:
    async with server(tmp_path, EVENTS, (), KubeFacts(events=(BACK_OFF,))) as app:
        seen, after = list[str](), ""
        while True:
            body = await found(app, text="needle", limit=2, after=after)
            seen += [hit["what"] for hit in body["hits"]]
            if body["complete"]:
                break
            after = body["next"]
    assert seen == ["Kubernetes", "task", "actor", "worker", "node", "task"]


async def test_patterns_and_case_mean_the_same_in_messages_as_in_logs(tmp_path: Path) -> None:
    async with server(tmp_path, EVENTS) as app:
        anchored = await found(app, text="^  needle$", regex="true")
        nothing = await found(app, text=r"\ATraceback\n", regex="true")
        shouted = await found(app, text="OTHER NEEDLE", ignore_case="true")
    assert [hit["count"] for hit in anchored["hits"]] == [5]
    assert nothing["hits"] == []
    assert [hit["what"] for hit in shouted["hits"]] == ["task"]


async def test_messages_are_shown_without_colours(tmp_path: Path) -> None:
    async with server(tmp_path, failed(1, "TASK_EXECUTION_EXCEPTION", "\x1b[36mray::step()\x1b[39m needle")) as app:
        body = await found(app, text="needle")
    assert [line["text"] for line in body["hits"][0]["lines"]] == ["ray::step() needle"]


async def test_secrets_in_messages_are_neither_shown_nor_found(tmp_path: Path) -> None:
    message = "\n".join(["needle", LINES["private_key"], LINES["hugging_face"]])
    async with server(tmp_path, failed(1, "TASK_EXECUTION_EXCEPTION", message)) as app:
        around = await found(app, text="needle", context=10)
        guessed = [await found(app, text=SECRETS[kind][:9]) for kind in ("hugging_face", "private_key")]
    assert len(around["hits"]) == 1
    assert SECRETS["hugging_face"] not in str(around)
    assert SECRETS["private_key"] not in str(around)
    assert [body["hits"] for body in guessed] == [[], []]


async def test_sessions_are_searched_newest_first_and_the_search_goes_on_where_it_stopped(tmp_path: Path) -> None:
    scene = a_scene(tmp_path)
    for number in range(7):
        session = SessionId("team-a", f"train-{number}", f"session_{number}")
        await put_session(scene.store, session, started_at=STARTED_AT + timedelta(hours=number))
        packs = PackBuilder(scene.store, session)
        packs.add("worker-1.out", b"needle one\nnothing\nneedle two\n" * (number != 3))
        await packs.put()
    clusters, after, rounds = list[str](), "", 0
    while True:
        body = await found(scene.app, f"{PREFIX}/search", text="needle", limit=3, after=after, kind="log")
        clusters += [hit["cluster"] for hit in body["hits"]]
        rounds += 1
        if body["complete"]:
            break
        after = body["next"]
    assert clusters == [f"train-{number}" for number in (6, 6, 5, 5, 4, 4, 2, 2, 1, 1, 0, 0)]
    assert rounds == 5
    since = (STARTED_AT + timedelta(hours=5)).isoformat()
    some = await found(scene.app, f"{PREFIX}/search", text="needle", since=since)
    assert {hit["cluster"] for hit in some["hits"]} == {"train-5", "train-6"}
    assert (some["searched_sessions"], some["complete"]) == (2, True)


async def test_the_page_of_all_sessions_says_where_each_hit_is(tmp_path: Path) -> None:
    scene = a_scene(tmp_path)
    await put_session(scene.store)
    packs = PackBuilder(scene.store)
    packs.add("worker-1.out", b"needle\n")
    await packs.put()
    page = await ask(scene.app, "/search?text=needle&since=2026-11-15")
    assert page.status == 200
    assert "team-a / train / session_2026-11-15_20-00-00_000000_9" in page.text
    assert "1 hit. All sessions were searched." in page.text
    assert "<form" in (await ask(scene.app, "/search")).text
    refused = await ask(scene.app, "/search?text=(&regex=true")
    assert (refused.status, "No pattern: missing )" in refused.text) == (400, True)


async def test_the_page_folds_messages_that_differ_in_numbers_alone(tmp_path: Path) -> None:
    alike = [
        one
        for number in range(1, 4)
        for one in failed(
            number, "TASK_EXECUTION_EXCEPTION", f"ValueError: needle in shard {number}", name=f"f{number}"
        )
    ]
    async with server(tmp_path, [*alike, *failed(9, "WORKER_DIED", "Other needle", name="other")]) as app:
        page = await ask(app, f"{SESSION.path}/search?text=NEEDLE&kind=error")
    assert "2 more like it, 3 times in all" in page.text
    assert page.text.count("like it") == 1
    assert page.text.index("Other needle") > 0
