"""The pages of sessions, jobs and comparisons as they are answered: whole, bounded, escaped and masked."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote

import msgspec
import pytest
from starlette.types import ASGIApp

from raykeeper.history.entities import job_list
from raykeeper.history.entities.job import Job
from raykeeper.history.http.keeper_api.operation import PREFIX as API
from raykeeper.history.http.pages.session import session_page
from raykeeper.history.http.pages.timeline_svg import Scale, lanes, tracks_of
from raykeeper.history.overview.model import JobOverview, Lane, SessionOverview, Span
from raykeeper.history.overview.session import session_overview
from raykeeper.history.query.context import SessionContext
from raykeeper.history.report.make import make_report
from raykeeper.layout.keys import SessionId
from support.asking import Answered, ask
from support.goldenserver import golden_server
from support.goldensession import Moments
from support.history_scene import HEAD_ID, SESSION, STARTED_AT, PackBuilder, Scene, a_scene, put_session, session_url
from support.ingest_scene import definition, lifecycle, task_id
from support.overview_scene import SECOND, asked_about, at
from support.raycapture import SESSION as GOLDEN

PREFIX = f"/s/{GOLDEN.namespace}/{GOLDEN.cluster}/{GOLDEN.session}"
RUN = f"{GOLDEN.namespace}/{GOLDEN.cluster}/{GOLDEN.session}"
PAGE_LIMIT_BYTES = 200_000
TOKEN = "hf_abcdefghijklmnopqrstuvwxyz"
TASK = "0305c20c67b558eeffffffffffffffffffffffff02000000"


@asynccontextmanager
async def server(moments: Moments) -> AsyncIterator[ASGIApp]:
    async with golden_server(moments["final"]) as app:
        yield app


def words_of(page: Answered) -> str:
    return re.sub(r"<[^>]*>", " ", page.text)


async def test_a_cold_job_page_reads_the_list_of_jobs_once(
    ingested_moments: Moments, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []
    read_jobs = job_list._read_jobs

    async def counted(context: SessionContext) -> tuple[Job, ...]:
        reads.append(context)
        return await read_jobs(context)

    monkeypatch.setattr(job_list, "_read_jobs", counted)
    async with server(ingested_moments) as app:
        assert (await ask(app, f"{PREFIX}/job/golden-fail")).status == 200
    assert len(reads) == 1  # for its overview, its report with the logs of failed jobs, and its driver's log


async def test_a_session_is_shown_with_its_jobs_nodes_and_root_cause(ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        page = await ask(app, f"{PREFIX}/overview")
        job = re.findall(r'href="([^"]*/job/golden-main)"', page.text)
        of_job = await ask(app, job[0])
    assert (page.status, of_job.status) == (200, 200)
    assert "exited with code 7" in words_of(page).partition("Jobs")[2].partition("Tasks over time")[0]
    assert page.text.count("<svg") == 3 + 2  # tasks at work, tasks ended, nodes alive, and the two nodes
    assert "\x1b" not in page.text
    for shown in (page, of_job):
        assert len(shown.content) < PAGE_LIMIT_BYTES
        assert "<script>" not in shown.text
        assert "style=" not in shown.text
        assert shown.headers["x-raykeeper-as-of"]


async def test_a_job_has_a_tab_for_each_thing_one_asks_about_it(ingested_moments: Moments) -> None:
    tabs = {
        "": ("Root cause", "ValueError: boom", "task fail_app", "Evidence"),
        "/timeline": ("Timeline", "Actors", "Nodes", "Kubernetes"),
        "/logs": ("Driver log", "driver stdout: job id 02000000"),
        "/tasks": ("Tasks over time", "By function", "those that failed come first"),
        "/actors": ("to_be_killed", "Ended because"),
        "/resources": ("Resource-hours", "ray-head"),
        "/environment": ("DB_PASSWORD", "owner=me"),
    }
    async with server(ingested_moments) as app:
        pages = {tab: await ask(app, f"{PREFIX}/job/golden-main{tab}") for tab in tabs}
        unknown = await ask(app, f"{PREFIX}/job/golden-main/nonsense")
        report = await ask(app, f"{PREFIX}/report/golden-main")
    for tab, expected in tabs.items():
        page = pages[tab]
        assert page.status == 200
        assert len(page.content) < PAGE_LIMIT_BYTES
        for words in expected:
            assert words in words_of(page), f"{words} on {tab}"
        links = re.findall(r'<nav aria-label="Job".*?</nav>', page.text)[0]
        assert all(f'{PREFIX}/job/golden-main{other}"' in links for other in tabs)
        assert links.count('aria-current="page"') == 1
        assert "#/jobs/02000000" in links
    actors = words_of(pages["/actors"])
    assert "Traceback" not in actors, "of a traceback the error is shown"
    assert unknown.status == 404
    assert "Root cause" in words_of(report), "the address of a report that somebody sent still works"


async def test_every_piece_of_evidence_leads_to_what_it_is_about(ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        page = await ask(app, f"{PREFIX}/job/golden-fail")
        panel = page.text.partition('class="panel bad cause"')[2].partition("</section>")[0]
        [href, *_] = re.findall(r'href="([^"]*/log\?[^"]*line=\d+#L\d+)"', panel)
        path, _, anchor = href.replace("&amp;", "&").partition("#")
        log = await ask(app, path)
        task = re.findall(r'href="([^"]*/tasks\?task=[^"]*)"', (await ask(app, f"{PREFIX}/job/golden-main")).text)
        shown = await ask(app, task[0].replace("&amp;", "&"))
    assert log.status == 200
    assert f'id="{anchor}"' in log.text
    assert 'id="here"' in log.text
    assert "ValueError: boom" in words_of(shown)
    assert "log/of?task=" in shown.text


async def test_what_a_task_or_an_actor_wrote_is_one_click_away(ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        task = await ask(app, f"{PREFIX}/job/golden-main/tasks?task={TASK}")
        actors = await ask(app, f"{PREFIX}/job/golden-main/actors")
        ways = [re.findall(r'href="([^"]*/log/of\?[^"]*)"', page.text)[0] for page in (task, actors)]
        found = [await ask(app, way.replace("&amp;", "&")) for way in ways]
        pages = [await ask(app, one.headers["location"].partition("#")[0]) for one in found]
        nothing = await ask(app, f"{PREFIX}/log/of?task={'ab' * 24}")
    assert [one.status for one in (*found, *pages)] == [302, 302, 200, 200]
    assert "ok task stdout 1" in words_of(pages[0])
    assert nothing.status == 404


async def test_a_search_in_a_drivers_log_by_its_old_address_is_a_filter_now(ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        old = await ask(app, f"{PREFIX}/job/golden-main?search=driver%20stdout")
        new = await ask(app, old.headers["location"])
    assert old.status == 302
    assert "2 lines with “driver stdout”" in words_of(new) or "1 line with “driver stdout”" in words_of(new)
    assert "driver stdout: job id 02000000" in words_of(new)


async def test_a_report_is_copied_as_markdown_without_its_secrets(scene: Scene) -> None:
    await pages_of(scene, evil_job())
    page = await ask(scene.app, f"{session_url()}/job/evil")
    text = await ask(scene.app, f"{session_url()}/job/evil/report.md")
    assert 'report.md" class="button" data-copies-text>Copy as Markdown' in page.text
    assert text.headers["content-type"].startswith("text/plain")
    assert text.text.startswith("### failed: main.py, job evil of ")
    assert TOKEN not in text.text
    assert "hunter2" not in text.text


async def test_the_command_line_of_a_job_quotes_its_names(scene: Scene) -> None:
    await pages_of(scene, evil_job() | {"submission_id": "a b;rm"})
    page = await ask(scene.app, f"{session_url()}/job/a%20b%3Brm")
    assert "raykeeper report &#x27;team-a/train/" in page.text
    assert "ray job logs &#x27;a b;rm&#x27;" in page.text


async def test_what_is_not_there_is_said_on_a_page(ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        job = await ask(app, f"{PREFIX}/job/nope")
        session = await ask(app, "/s/a/b/c/overview")
    assert (job.status, session.status) == (404, 404)
    assert "no job nope" in words_of(job)
    assert "no session a/b/c" in words_of(session)


async def test_json_and_pages_say_the_same(ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        overview = await ask(app, f"{PREFIX}{API}/overview")
        job = await ask(app, f"{API}/sessions/{RUN}/jobs/golden-main/overview")
        log = await ask(app, f"{API}/sessions/{RUN}/jobs/golden-fail/log?search=raising")
        nobody = await ask(app, f"{API}/sessions/{RUN}/jobs/nope/overview")
    session = msgspec.json.decode(overview.content, type=SessionOverview)
    assert session.counts.failed == 15
    assert msgspec.json.decode(job.content, type=JobOverview).counts.attempts == 112
    assert (log.body["hits"], nobody.status) == (1, 404)


async def test_two_jobs_stand_side_by_side(ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        page = await ask(app, f"/compare?a={RUN}/golden-main&b={RUN}/golden-fail")
        api = await ask(app, f"{API}/compare?a={RUN}/golden-main&b={RUN}/golden-fail")
        itself = await ask(app, f"{API}/compare?a={RUN}&b={RUN}")
    assert page.status == 200
    assert "python job_fail.py" in words_of(page)
    differing = {(fact["topic"], fact["name"]) for fact in api.body["differing"]}
    assert "entrypoint: Entrypoint" not in page.text
    assert {("entrypoint", "Entrypoint"), ("env vars", "MYVAR"), ("outcome", "Status")} <= differing
    assert {fact["name"] for fact in api.body["same"]} >= {"Ray", "Python"}
    assert {failure["b"] for failure in api.body["failures"]} == {0}
    assert (itself.body["differing"], len(itself.body["failures"]) > 5) == ([], True)
    assert all(failure["a"] == failure["b"] for failure in itself.body["failures"])


async def test_runs_that_cannot_be_compared_are_asked_for_again(ingested_moments: Moments) -> None:
    async with server(ingested_moments) as app:
        form = await ask(app, f"/compare?a={RUN}")
        wrong = await ask(app, f"/compare?a={RUN}&b=a/b/c")
        api = await ask(app, f"{API}/compare?a={RUN}&b={RUN}/nope")
        none = await ask(app, f"{API}/compare?a={RUN}")
    assert (form.status, wrong.status, api.status, none.status) == (200, 400, 400, 400)
    assert f'value="{RUN}"' in form.text
    assert "there is no session a/b/c" in words_of(wrong)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return a_scene(tmp_path)


async def test_sessions_to_compare_with_are_offered(scene: Scene) -> None:
    for number in range(3):
        await put_session(scene.store, SessionId("team-a", f"run-{number}", f"session_{number}"))
    await put_session(scene.store, SessionId("team-b", "other", "session_9"))
    page = await ask(scene.app, "/compare?a=team-a/run-1/session_1/some-job")
    offered = re.findall(r'href="/compare\?a=([^&"]*)&amp;b=([^"]*)"', page.text)
    assert {unquote(a) for a, _ in offered} == {"team-a/run-1/session_1"}
    assert sorted(unquote(b) for _, b in offered) == ["team-a/run-0/session_0", "team-a/run-2/session_2"]


def evil_job(status: str = "FAILED") -> dict[str, object]:
    return {
        "type": "SUBMISSION",
        "submission_id": "evil",
        "job_id": None,
        "status": status,
        "entrypoint": f"python main.py --token {TOKEN} <img src=x onerror=alert(1)>",
        "message": f"failed with https://me:hunter2@example.org {TOKEN}",
        "metadata": {"owner": f"api_key={TOKEN}"},
        "runtime_env": {"env_vars": {"KEY": "seventeen"}, "pip": [f"https://me:hunter2@example.org/{TOKEN}"]},
        "driver_node_id": HEAD_ID,
        "start_time": int(STARTED_AT.timestamp() * 1000),
        "end_time": None,
    }


async def pages_of(scene: Scene, job: dict[str, object]) -> list[Answered]:
    await put_session(scene.store)
    pack = PackBuilder(scene.store)
    pack.add("job-driver-evil.log", f"<b>hello</b> password=hunter2 {TOKEN}\n".encode())
    await pack.put()
    scene.sessions.have_polled(SESSION, "/api/jobs/", [job])
    run, url = str(SESSION), session_url()
    paths = (
        f"{url}/overview",
        f"{url}/job/evil",
        *(f"{url}/job/evil/{tab}" for tab in ("timeline", "logs", "tasks", "actors", "resources", "environment")),
        f"{url}/job/evil/logs?filter=hello",
        f"{url}/log?node={HEAD_ID}&file=job-driver-evil.log",
        f"{url}/job/evil/report.md",
        f"/compare?a={run}/evil&b={run}",
        f"{url}{API}/overview",
        f"{url}{API}/jobs/evil/overview",
        f"{url}{API}/jobs/evil/log",
        f"{API}/compare?a={run}/evil&b={run}",
    )
    return [await ask(scene.app, path) for path in paths]


async def test_secrets_are_masked_and_markup_is_text_on_every_page(scene: Scene) -> None:
    for page in await pages_of(scene, evil_job()):
        assert page.status == 200, page.text
        assert TOKEN not in page.text
        assert "hunter2" not in page.text
        assert "seventeen" not in page.text
        if page.headers["content-type"].startswith("text/html"):
            assert "<img" not in page.text
            assert "<b>hello" not in page.text


async def test_a_job_that_runs_says_for_how_long(scene: Scene) -> None:
    page = (await pages_of(scene, evil_job("RUNNING")))[1]
    assert "Runs for" in words_of(page)


async def test_a_session_of_nothing_says_what_would_be_there(scene: Scene) -> None:
    await put_session(scene.store)
    words = words_of(await ask(scene.app, f"{session_url()}/overview"))
    for expected in ("No job was submitted", "No tasks are recorded", "No node is recorded", "nothing is known to be"):
        assert expected in words


async def test_while_a_session_is_read_the_page_says_how_far_it_is_and_comes_again(tmp_path: Path) -> None:
    async with asked_about(tmp_path, [], as_of=at(60)) as asked:
        overview, report = await session_overview(asked), await make_report(asked)
    unread = replace(overview, facts=replace(overview.facts, unread_bytes=750, total_bytes=1000))
    response = session_page(unread, report)
    assert "25% are done" in bytes(response.body).decode()
    assert response.headers["refresh"]
    assert "refresh" not in session_page(overview, report).headers


async def test_names_of_any_length_and_kind_stay_within_a_bounded_page(tmp_path: Path) -> None:
    events = []
    for number in range(300):
        task = task_id(number)
        states = [("PENDING_ARGS_AVAIL", 0), ("RUNNING", 0), ("FINISHED", (number + 1) * SECOND)]
        events += [definition(task, name=f"<b>{number}-{'long' * 60}"), lifecycle(task, states)]
    async with asked_about(tmp_path, events, as_of=at(600)) as asked:
        overview, report = await session_overview(asked), await make_report(asked)
        page = bytes(session_page(overview, report).body)
    assert overview.functions.left_out == 200
    assert b"200 functions that took less time are not listed" in page
    assert len(page) < PAGE_LIMIT_BYTES
    assert b"<b>" not in page


def test_what_runs_at_the_same_time_is_drawn_below_each_other() -> None:
    spans = [span(0, 10), span(2, 5), span(5, 7), span(11, 12)]
    assert tracks_of(spans) == [0, 1, 1, 0]
    assert max(tracks_of([span(number, 100) for number in range(50)])) == 5


def test_a_moment_is_seen_and_what_lies_outside_stays_within() -> None:
    drawn = lanes([Lane("tasks", "f", "x", spans=(span(-50, -40), span(50, 50), span(90, 400)))], Scale(at(0), at(100)))
    xs = [
        float(point.partition(",")[0]) for points in re.findall(r'points="([^"]*)"', drawn) for point in points.split()
    ]
    assert (min(xs), max(xs)) == (0, 1000)
    assert 'aria-label="f: x"' in drawn


def span(begin: float, end: float) -> Span:
    return Span(at(begin), at(0) + timedelta(seconds=end), "running", "title")
