"""What a driver printed: the end of it, or lines with some words and those around them."""

from __future__ import annotations

from pathlib import Path

import pytest

from raykeeper.history.entities.job import Job
from raykeeper.history.entities.job_list import find_job
from raykeeper.history.overview.driver_log import (
    LAST_LINES,
    NOT_STARTED,
    NOT_SUBMITTED,
    DriverLog,
    LineSearch,
    driver_log,
)
from raykeeper.history.query.context import SessionContext
from support.goldensession import Moments, golden_session
from support.history_scene import HEAD_ID, SESSION, PackBuilder, Scene, a_scene, opened_plainly

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


def test_nobody_guesses_at_a_private_key_by_searching_for_its_lines() -> None:
    key = ["-----BEGIN RSA PRIVATE KEY-----", "MIIEpAIBAAKCAQEA7v", "q83ZbXvYtRw", "-----END RSA PRIVATE KEY-----"]
    text = "\n".join(["loading", *key, "loaded MIIEpAIBAAKCAQEA7v"])
    assert [line for passage in shown(searched(text, "miiepaibaakcaqea7v")) for line in passage if line[1]] == [
        (6, True)
    ]
    around = searched(text, "loading")
    assert [line.text for line in around.passages[0].lines] == ["loading", "<redacted>", "<redacted>"]


async def test_the_recorded_drivers_log_is_shown_and_searched(ingested_moments: Moments) -> None:
    async with golden_session(ingested_moments["final"]) as context:
        job = await find_job(context, "golden-fail")
        last = await driver_log(context, job)
        found = await driver_log(context, job, "RAISING")
    assert last.passages[0].lines[-1].text == "job_fail: raising"
    assert (last.file, last.missing) == ("job-driver-golden-fail.log", "")
    assert found.hits == 1
    assert [line.is_hit for line in found.passages[-1].lines] == [False, False, True]


@pytest.mark.parametrize(("job", "why"), [("golden-badenv", NOT_STARTED), ("04000000", NOT_SUBMITTED)])
async def test_a_job_without_a_log_says_why(ingested_moments: Moments, job: str, why: str) -> None:
    async with golden_session(ingested_moments["final"]) as context:
        log = await driver_log(context, await find_job(context, job))
    assert (log.missing, log.passages) == (why, ())


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return a_scene(tmp_path)


JOB = {"type": "SUBMISSION", "submission_id": "s", "driver_node_id": HEAD_ID, "status": "FAILED"}


async def log_of(scene: Scene, text: str, search: str = "") -> DriverLog:
    pack = PackBuilder(scene.store)
    pack.add("job-driver-s.log", text.encode())
    await pack.put()
    context = SessionContext(opened_plainly(SESSION), scene.history.database, scene.history.logs)
    return await driver_log(context, Job(JOB), search)


async def test_the_end_of_a_long_log_is_shown_without_colours_and_secrets(scene: Scene) -> None:
    text = "\n".join(f"\x1b[36mline {number}\x1b[0m" for number in range(500)) + f"\ntoken={TOKEN}\n"
    log = await log_of(scene, text)
    lines = [line.text for line in log.passages[0].lines]
    assert (len(lines), lines[-1], lines[-2]) == (LAST_LINES, "token=<redacted>", "line 499")


async def test_only_the_end_of_a_huge_log_is_searched_and_that_is_said(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raykeeper.history.overview.driver_log.SEARCHED_BYTES", 1000)
    log = await log_of(scene, "needle\n" + "-" * 5000 + "\nneedle\n", "needle")
    assert (log.hits, log.skipped_bytes) == (1, 6 + 1 + 5001 + 7 - 1000)


async def test_words_that_are_nowhere_give_no_passage(scene: Scene) -> None:
    log = await log_of(scene, "one\ntwo\n", "absent")
    assert (log.hits, log.passages, log.missing) == (0, (), "")
