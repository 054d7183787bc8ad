"""What a driver printed: the end of it, or lines with some words and those around them."""

from __future__ import annotations

from pathlib import Path

import pytest

from goldensession import Moments, golden_session
from history_scene import HEAD_ID, SESSION, OpenedPlainly, PackBuilder, Scene, a_scene
from raykeeper.history.asked import Asked
from raykeeper.history.logs.logstore import LogStore
from raykeeper.history.overview import driverlog
from raykeeper.history.overview.driverlog import LAST_LINES, NOT_STARTED, NOT_SUBMITTED, driver_log
from raykeeper.history.overview.job import find_job
from raykeeper.history.overview.linesearch import LineSearch

TOKEN = "hf_abcdefghijklmnopqrstuvwxyz"


def searched(text: str, words: str, limit: int = 10) -> LineSearch:
    search = LineSearch(words, limit)
    for number, line in enumerate(text.split("\n"), 1):
        search.take(number, line)
    return search


def shown(search: LineSearch) -> list[list[tuple[int | None, bool]]]:
    return [[(line.number, line.is_hit) for line in passage.lines] for passage in search.passages]


def test_hits_have_the_lines_around_them() -> None:
    search = searched("a\nb\nc\nBoom\ne\nf\ng\nh", "boom")
    assert shown(search) == [[(2, False), (3, False), (4, True), (5, False), (6, False)]]


def test_passages_that_touch_become_one_and_others_stay_apart() -> None:
    text = "\n".join("x" if number in (3, 8, 20) else "-" for number in range(1, 30))
    first, second = shown(searched(text, "x"))
    assert [number for number, _ in first] == list(range(1, 11))
    assert [number for number, _ in second] == list(range(18, 23))
    neighbours = shown(searched("x\nx\n-\n-\n-\n-\n-\n-", "x"))
    assert neighbours == [[(1, True), (2, True), (3, False), (4, False)]]


def test_more_hits_than_are_shown_are_counted() -> None:
    search = searched("x\n" * 50, "x", limit=3)
    assert search.hits == 50
    assert sum(line.is_hit for passage in search.passages for line in passage.lines) == 3


def test_nobody_guesses_at_a_secret_by_searching_for_it() -> None:
    search = searched(f"HF_TOKEN={TOKEN}\nHF_TOKEN seen", TOKEN[:6])
    assert search.hits == 0
    found = searched(f"HF_TOKEN={TOKEN}", "hf_token")
    assert [line.text for passage in found.passages for line in passage.lines] == ["HF_TOKEN=<redacted>"]


async def test_the_recorded_drivers_log_is_shown_and_searched(ingested_moments: Moments) -> None:
    async with golden_session(ingested_moments["final"]) as asked:
        assert isinstance(asked.logs, LogStore)
        job = await find_job(asked, "golden-fail")
        last = await driver_log(asked, asked.logs, job)
        found = await driver_log(asked, asked.logs, job, "RAISING")
    assert last.passages[0].lines[-1].text == "job_fail: raising"
    assert (last.file, last.missing) == ("job-driver-golden-fail.log", "")
    assert found.hits == 1
    assert [line.is_hit for line in found.passages[-1].lines] == [False, False, True]


@pytest.mark.parametrize(("job", "why"), [("golden-badenv", NOT_STARTED), ("04000000", NOT_SUBMITTED)])
async def test_a_job_without_a_log_says_why(ingested_moments: Moments, job: str, why: str) -> None:
    async with golden_session(ingested_moments["final"]) as asked:
        assert isinstance(asked.logs, LogStore)
        log = await driver_log(asked, asked.logs, await find_job(asked, job))
    assert (log.missing, log.passages) == (why, ())


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return a_scene(tmp_path)


JOB = {"type": "SUBMISSION", "submission_id": "s", "driver_node_id": HEAD_ID, "status": "FAILED"}


async def log_of(scene: Scene, text: str, search: str = "") -> driverlog.DriverLog:
    pack = PackBuilder(scene.store)
    pack.add("job-driver-s.log", text.encode())
    await pack.put()
    asked = Asked(OpenedPlainly(SESSION), scene.parts.database, scene.parts.logs)
    return await driver_log(asked, scene.parts.logs, JOB, search)


async def test_the_end_of_a_long_log_is_shown_without_colours_and_secrets(scene: Scene) -> None:
    text = "\n".join(f"\x1b[36mline {number}\x1b[0m" for number in range(500)) + f"\ntoken={TOKEN}\n"
    log = await log_of(scene, text)
    lines = [line.text for line in log.passages[0].lines]
    assert (len(lines), lines[-1], lines[-2]) == (LAST_LINES, "token=<redacted>", "line 499")


async def test_only_the_end_of_a_huge_log_is_searched_and_that_is_said(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driverlog, "SEARCHED_BYTES", 1000)
    log = await log_of(scene, "needle\n" + "-" * 5000 + "\nneedle\n", "needle")
    assert (log.hits, log.skipped_bytes) == (1, 6 + 1 + 5001 + 7 - 1000)


async def test_words_that_are_nowhere_give_no_passage(scene: Scene) -> None:
    log = await log_of(scene, "one\ntwo\n", "absent")
    assert (log.hits, log.passages, log.missing) == (0, (), "")
