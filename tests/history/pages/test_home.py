"""The start page: the jobs of all clusters with how each went and why, and the last day in numbers."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from raykeeper.history.failures.index import failures_within
from raykeeper.history.failures.notes import write_note
from raykeeper.history.jobs_list import counts
from raykeeper.history.jobs_list.counts import JobCounts, counted_jobs, counts_within
from raykeeper.layout.keys import CatalogKey, SessionId
from raykeeper.layout.records import encode_record
from raykeeper.layout.summaries import FailureSummary, HeadlineSummary, JobSummary, SessionSummary
from support.asking import ask
from support.clocks import ManualClock
from support.history_scene import STARTED_AT, Scene, a_scene, put_session


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(now=STARTED_AT + timedelta(hours=2))


@pytest.fixture
def scene(tmp_path: Path, clock: ManualClock) -> Scene:
    return a_scene(tmp_path, clock=clock)


def a_job(name: str, outcome: str, **more: Any) -> JobSummary:
    facts: dict[str, Any] = {
        "submission_id": name,
        "status": "FAILED" if outcome == "failed" else "SUCCEEDED",
        "outcome": outcome,
        "started_at": STARTED_AT,
        "ended_at": STARTED_AT + timedelta(minutes=5),
        "entrypoint": f"cd /tmp/x && exec python {name}.py --lr 1",
        **more,
    }
    return JobSummary(**facts)


async def put_jobs(scene: Scene, *jobs: JobSummary) -> None:
    session = SessionId("team-a", "train", "session_1")
    await put_session(scene.store, session, ended_at=STARTED_AT + timedelta(hours=1))
    summary = SessionSummary(version=4, as_of=STARTED_AT, jobs=jobs)
    await scene.store.put(CatalogKey(STARTED_AT.date(), session, "summary").key, encode_record(summary))


def names(page: str) -> list[str]:
    return re.findall(r">(\w+)\.py</a>", page)


HEADLINE = HeadlineSummary(text="KeyError: 'lr'", what="task step", where="main.py:7")
JOBS = (
    a_job("bad", "failed", failure="x", headline=HEADLINE, tasks={"FAILED": 2, "FINISHED": 98}),
    a_job("partial", "with failures", failure="y", tasks={"FAILED": 1, "FINISHED": 1}),
    a_job("good", "ok", ended_at=STARTED_AT + timedelta(minutes=50), tasks={"FINISHED": 500}),
)


async def test_a_job_is_called_by_its_script_and_its_cause_leads_to_its_report(scene: Scene) -> None:
    await put_jobs(scene, *JOBS)
    page = (await ask(scene.app, "/")).text
    assert '<span class="badge bad">Failed</span>' in page
    assert '--lr 1">bad.py</a>' in page, "the command is its title"
    assert '<a href="/s/team-a/train/session_1/report/bad">KeyError: &#x27;lr&#x27;</a>' in page
    assert "task step · main.py:7" in page
    assert 'aria-label="100 attempts, 2 failed"' in page
    assert 'title="2026-11-15 20:00:00 UTC" data-ago>2\u00a0h ago</time>' in page


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", ["good", "partial", "bad"]),
        ("outcome=failed", ["bad"]),
        ("outcome=with+failures", ["partial"]),
        ("outcome=running", []),
        ("sort=tasks", ["bad", "partial", "good"]),
        ("sort=ran", ["good", "partial", "bad"]),
        ("cluster=other", []),
    ],
)
async def test_jobs_are_narrowed_by_chips_and_sorted_by_heads(scene: Scene, query: str, shown: list[str]) -> None:
    await put_jobs(scene, *JOBS)
    page = (await ask(scene.app, f"/jobs?{query}")).text
    assert sorted(names(page)) == sorted(shown)
    if "sort" in query:
        assert names(page)[0] == shown[0]
        assert 'aria-sort="descending"' in page


async def test_a_chip_keeps_what_else_is_asked_for_and_starts_at_the_first_page(scene: Scene) -> None:
    page = (await ask(scene.app, "/jobs?namespace=team-a&outcome=failed")).text
    assert '<a href="/jobs?namespace=team-a&amp;outcome=running">Running</a>' in page
    assert 'aria-current="true">Failed</a>' in page
    assert '<input type="hidden" name="outcome" value="failed">' in page, "the form keeps the chip"


async def test_what_is_only_a_first_look_says_so(scene: Scene) -> None:
    await put_jobs(scene, a_job("new", "failed", failure="OSError: no", is_provisional=True), a_job("mute", "failed"))
    page = (await ask(scene.app, "/")).text
    assert page.count(">provisional</span>") == 1
    assert "Open the report" in page, "a failure without words leads to its report too"


async def test_the_last_day_is_told_in_numbers(scene: Scene, clock: ManualClock) -> None:
    await put_jobs(scene, *JOBS)
    known = await counts_within(scene.history, 10)
    assert known == JobCounts(jobs=3, failed=1, with_failures=1, is_known=True)
    await failures_within(scene.history, 10)
    page = (await ask(scene.app, "/")).text
    cards = re.findall(r"<span>([^<]*)</span><strong[^>]*>([^<]*)</strong>", page)
    assert cards == [
        ("Jobs, last 24 h", "3"),
        ("Failed", "1"),
        ("Succeeded with failures", "1"),
        ("Running now", "0"),
        ("New kinds of failure", "0"),
    ]


def test_a_job_that_ended_before_the_period_is_not_counted_and_one_that_runs_is() -> None:
    long_ago = STARTED_AT - timedelta(days=9)
    running = a_job("r", "running with failures", started_at=long_ago, ended_at=None)
    old = a_job("o", "failed", started_at=long_ago, ended_at=long_ago)
    found = counted_jobs([running, old, a_job("n", "ok", started_at=long_ago)], STARTED_AT)
    assert found == JobCounts(jobs=2, running=1, running_with_failures=1, is_known=True)


async def test_the_page_names_the_answer_that_its_module_polls(scene: Scene) -> None:
    page = (await ask(scene.app, "/jobs?outcome=running&sort=ran")).text
    [path] = re.findall(r'data-live="([^"]*)"', page)
    assert path == "/api/keeper/v1/jobs?outcome=running"
    assert (await ask(scene.app, path)).status == 200
    assert "live.js" in page


async def test_counts_that_stop_somewhere_say_so(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "MOST_SESSIONS", 1)
    monkeypatch.setattr(counts, "_PAGE", 1)
    await put_jobs(scene, *JOBS)
    await put_session(scene.store, SessionId("team-a", "train", "session_0"))
    assert not (await counts_within(scene.history, 10)).is_complete
    assert ">at least " in (await ask(scene.app, "/")).text


async def test_a_muted_kind_is_none_of_the_new_ones(scene: Scene, clock: ManualClock) -> None:
    kinds = tuple(FailureSummary(fingerprint=one, title=one, rule="raised_exception") for one in ("f1", "f2"))
    await put_jobs(scene, a_job("bad", "failed", failures=kinds))
    await write_note(scene.history, "f1", "", is_muted=True)
    assert len((await failures_within(scene.history, 10)).kinds) == 2
    page = (await ask(scene.app, "/")).text
    assert re.findall(r"New kinds of failure</span><strong>(\d+)</strong>", page) == ["1"]
