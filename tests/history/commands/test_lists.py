"""`raykeeper jobs`, `raykeeper sessions`, and `raykeeper report` without a name: from a store or from a server."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from raykeeper.cli.app import app
from raykeeper.history.commands.lists import Lists, last_failure, name_of
from raykeeper.history.http.keeper_api.jobs import JobsAnswer, JobsQuery, ListedJob
from raykeeper.history.http.keeper_api.sessions import SessionsAnswer, SessionsQuery
from raykeeper.history.report.model import Outcome, Report
from recording.archives import ARCHIVES, unpack_into
from support.serving_history import serving
from support.whole_history import built_server

RECORDED = ("went-well", "one-of-many", "missing-module", "all-good")
LAST = "recorded/missing-module/"
"""Of the recordings that failed, the newest; one that went well is newer."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lists") / "store"
    for name in RECORDED:
        unpack_into(folder, ARCHIVES / f"{name}.tar.zst")
    return folder


@pytest.fixture(scope="module")
def source(store: Path) -> tuple[str, ...]:
    return ("--store", store.as_uri(), "--cache-dir", str(store.parent / "cache"))


def command(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_jobs_are_listed_with_what_became_of_them_and_what_report_takes(source: tuple[str, ...]) -> None:
    shown = command("jobs", *source)
    assert shown.exit_code == 0, shown.output
    lines = shown.stdout.splitlines()
    assert lines[0].split() == ["STATE", "STARTED", "TOOK", "NAME"]
    [failed] = [line for line in lines if LAST in line]
    assert failed.startswith("failed ")
    assert "ModuleNotFoundError: No module named 'sklearnn'" in lines[lines.index(failed) + 1]
    name = failed.split()[-1]
    assert name.endswith("/nightly")
    assert command("report", name, *source).exit_code == 1


def test_a_list_can_be_limited_and_says_that_there_are_more(source: tuple[str, ...]) -> None:
    shown = command("jobs", "--limit", "1", *source).stdout
    assert shown.count("/nightly") == 1
    assert "older jobs are not shown" in shown
    assert command("jobs", "--cluster", "one-of-many", *source).stdout.count("/nightly") == 1
    assert "no jobs in this store are as wanted" in command("jobs", "--namespace", "nobody", *source).stdout


def test_sessions_are_listed_by_the_names_that_report_takes(source: tuple[str, ...]) -> None:
    lines = command("sessions", *source).stdout.splitlines()
    names = [line.split()[-1] for line in lines if line.startswith("ended ")]
    assert sorted(name.split("/")[1] for name in names) == sorted(RECORDED)


async def test_a_server_lists_the_same_as_its_store(source: tuple[str, ...], store: Path, tmp_path: Path) -> None:
    async with built_server(store, tmp_path / "served") as server, serving(server) as url:
        for kind, answer in (("jobs", JobsAnswer), ("sessions", SessionsAnswer)):
            told = [await asyncio.to_thread(command, kind, "--json", *where) for where in (source, ("--server", url))]
            stored, asked = [msgspec.json.decode(one.stdout, type=answer) for one in told]
            assert stored == asked
            assert len(getattr(stored, kind)) == len(RECORDED)
        shown = await asyncio.to_thread(command, "report", "--server", url)
    assert (shown.exit_code, LAST in shown.stderr) == (1, True)


def test_a_report_without_a_name_is_on_the_last_failure_and_says_which(source: tuple[str, ...]) -> None:
    shown = command("report", "--json", *source)
    report = msgspec.json.decode(shown.stdout, type=Report)
    assert (shown.exit_code, report.outcome) == (1, Outcome.FAILED)
    assert (report.cluster, report.job) == ("missing-module", "nightly")
    [line] = shown.stderr.splitlines()
    assert line.startswith(f"raykeeper: the last failure is {LAST}session_")
    assert line.endswith("/nightly. For another: raykeeper report <name>; `raykeeper jobs` lists them")


def test_where_nothing_failed_there_is_nothing_to_report(tmp_path: Path) -> None:
    unpack_into(tmp_path / "store", ARCHIVES / "all-good.tar.zst")
    shown = command("report", "--store", (tmp_path / "store").as_uri(), "--cache-dir", str(tmp_path / "cache"))
    assert (shown.exit_code, shown.stdout) == (0, "")
    assert "nothing failed in the newest 1 job" in shown.stderr


def test_an_empty_store_says_what_to_do_next(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    source = ("--store", (tmp_path / "store").as_uri(), "--cache-dir", str(tmp_path / "cache"))
    for kind in ("jobs", "sessions"):
        shown = command(kind, *source)
        assert (shown.exit_code, f"no {kind} in this store yet" in shown.stdout) == (0, True), shown.output
        assert "Next: `raykeeper demo`" in shown.stdout
    shown = command("report", *source)
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert "there are no jobs yet: `raykeeper demo` runs one" in shown.stderr


@pytest.mark.parametrize("kind", ["jobs", "sessions", "report"])
def test_a_folder_that_is_not_there_is_no_empty_store(kind: str, tmp_path: Path) -> None:
    """A slip in its name read as "no jobs yet"."""
    url = (tmp_path / "stroe").as_uri()
    shown = command(kind, "--store", url, "--cache-dir", str(tmp_path / "cache"))
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert shown.stderr == f"raykeeper: --store={url!r} cannot be used: there is no such folder on this machine\n"
    assert not (tmp_path / "stroe").exists()


@pytest.mark.parametrize("kind", ["jobs", "sessions", "report"])
def test_a_source_is_needed(kind: str) -> None:
    shown = command(kind)
    assert (shown.exit_code, shown.stderr) == (2, "raykeeper: say where the history is: --store or --server\n")


def a_job(name: str, outcome: str, started: int, ended: int) -> ListedJob:
    return ListedJob(
        namespace="n",
        cluster="c",
        session="s",
        job_id=None,
        submission_id=name,
        status="FAILED",
        started_at=datetime.fromtimestamp(started, UTC),
        ended_at=datetime.fromtimestamp(ended, UTC),
        entrypoint="",
        metadata={},
        outcome=outcome,
        failure="",
        is_provisional=False,
        headline=None,
        failures=(),
        tasks={},
        report="",
    )


class Pages(Lists):
    """Lists of jobs page by page; the first page is being read when it is first asked for."""

    def __init__(self, *pages: tuple[ListedJob, ...]) -> None:
        self._pages = pages
        self._unread = 1

    async def jobs(self, query: JobsQuery) -> JobsAnswer:
        number = int(query.after or 0)
        after = str(number + 1) if number + 1 < len(self._pages) else None
        unread, self._unread = self._unread, 0
        jobs = () if unread else self._pages[number]
        return JobsAnswer(jobs=jobs, next=after, unread=unread, left_out=0, unreadable=0)

    async def sessions(self, query: SessionsQuery) -> SessionsAnswer:
        raise NotImplementedError


async def test_the_last_failure_is_the_one_that_ended_last_and_no_stop_by_a_user() -> None:
    fine, stopped = a_job("fine", "ok", 9, 20), a_job("stopped", "stopped", 8, 19)
    short, long = a_job("short", "failed", 7, 8), a_job("long", "with failures", 6, 12)
    found = await last_failure(Pages((fine, stopped), (short, long), (a_job("old", "failed", 1, 2),)))
    assert found.job is not None
    assert (name_of(found.job), found.looked_at, found.unread) == ("long", 4, 0)
