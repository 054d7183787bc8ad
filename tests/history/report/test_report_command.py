"""`raykeeper report`: from a store or from a server, for people and for scripts."""

from __future__ import annotations

import asyncio
import io
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from raykeeper.cli.app import app
from raykeeper.history.commands.report_text import ReportScreen
from raykeeper.history.http.pages.export import MAX_BYTES
from raykeeper.history.report.model import Counts, Outcome, Report
from raykeeper.history.report.words import VERDICTS
from raykeeper.layout.keys import CatalogKey, RayJobId, node_record_key
from raykeeper.layout.rayjobs import RayJobRecord, RayJobState
from raykeeper.layout.records import CatalogStart, Delivery, NodeRecord, encode_record
from raykeeper.storage.store import ObjectStore
from support.goldenserver import golden_server
from support.goldensession import Moments
from support.ingest_scene import HEAD, START_NS, finished_task, put_records, put_segment
from support.ingest_scene import SESSION as SMALL
from support.ingest_scene import local_store as small_store
from support.raycapture import SESSION
from support.recorded_failures import RecordedFailures
from support.report_scene import running_task
from support.serving_history import serving
from support.whole_history import built_server

STARTED = datetime.fromtimestamp(START_NS / 1e9, UTC)
NAME = f"{SMALL.namespace}/{SMALL.cluster}/{SMALL.session}"


def command(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["report", *arguments])


async def put_small(store: ObjectStore, *, is_ended: bool, is_fine: bool) -> None:
    """A session of two tasks that ended, or whose head fell silent over one of them."""
    names = {"namespace": SMALL.namespace, "cluster": SMALL.cluster, "session": SMALL.session}
    start = CatalogStart(**names, started_at=STARTED)
    await store.put(CatalogKey(STARTED.date(), SMALL, "start").key, encode_record(start))
    await put_segment(store, 1, finished_task(1) if is_fine else [*finished_task(1), *running_task(2)])
    await put_records(store, STARTED + timedelta(minutes=1), is_ended=is_ended)


def test_nothing_failed_is_exit_code_0(tmp_path: Path) -> None:
    asyncio.run(put_small(small_store(tmp_path / "store"), is_ended=True, is_fine=True))
    shown = command(NAME, "--store", f"file://{tmp_path}/store", "--cache-dir", str(tmp_path / "cache"))
    assert (shown.exit_code, "nothing failed" in shown.stdout) == (0, True), shown.output


def test_a_session_of_which_nothing_arrived_is_not_called_a_success(tmp_path: Path) -> None:
    asyncio.run(put_records(small_store(tmp_path / "store"), STARTED + timedelta(minutes=1), is_ended=True))
    shown = command(NAME, "--store", f"file://{tmp_path}/store", "--cache-dir", str(tmp_path / "cache"))
    assert "nothing is recorded that could have failed" in shown.stdout, shown.output
    assert "no event of Ray's ever arrived" in shown.stdout
    assert "1970" not in shown.stdout


def test_a_lost_head_is_the_root_cause_of_what_was_cut_off_and_what_is_unknown_is_said(tmp_path: Path) -> None:
    store = small_store(tmp_path / "store")
    asyncio.run(put_small(store, is_ended=False, is_fine=False))
    asyncio.run(lose_events(store))
    os.utime(tmp_path / "store" / node_record_key(SMALL, HEAD), (STARTED.timestamp(), STARTED.timestamp()))
    shown = command(NAME, "--store", f"file://{tmp_path}/store", "--cache-dir", str(tmp_path / "cache"), "--json")
    report = msgspec.json.decode(shown.stdout, type=Report)
    assert (shown.exit_code, report.outcome) == (1, Outcome.FAILED)
    assert report.root_cause is not None
    assert (report.root_cause.rule, report.root_cause.failures) == ("crashed_cluster", 1)
    assert [unknown.what for unknown in report.unknown] == ["dropped by Ray", "no end"]
    assert report.unknown[0].text.startswith("17 events")


RECORDED = [
    ("went-well", 0, "succeeded, every failure was recovered by a retry"),
    ("one-of-many", 1, "failed"),
    ("stopped-job", 1, "stopped by its user"),
    ("killed-head", 1, "failed"),
    ("head-image-missing", 1, "failed"),
]


@pytest.mark.parametrize(("name", "code", "verdict"), RECORDED)
def test_a_script_knows_by_the_exit_code_how_it_went(
    name: str, code: int, verdict: str, recorded_failures: RecordedFailures, tmp_path: Path
) -> None:
    place = ("--store", recorded_failures.store.as_uri(), "--cache-dir", str(tmp_path))
    shown, told = command(f"recorded/{name}/latest", *place), command(f"recorded/{name}/latest", *place, "--json")
    assert (shown.exit_code, told.exit_code) == (code, code), shown.output
    assert shown.stdout.startswith(f"{verdict}: ")
    report = msgspec.json.decode(told.stdout, type=Report)
    assert (report.cluster, report.root_cause is None) == (name, code == 0)


def test_a_report_is_written_as_one_page(recorded_failures: RecordedFailures, tmp_path: Path) -> None:
    place = ("--store", recorded_failures.store.as_uri(), "--cache-dir", str(tmp_path))
    file = tmp_path / "report.html"
    shown = command("recorded/one-of-many/latest", *place, "--html", str(file))
    assert shown.exit_code == 1, shown.output
    assert "has the report as one page" in shown.output
    page = file.read_text()
    assert "Content-Security-Policy" in page
    assert ' href="' not in page, "a path would lead to another file of the disk"
    assert len(page) < MAX_BYTES


RAYJOBS = [
    (RayJobState(at=STARTED, deployment_status="Initializing", waits_for="QuotaExceeded: 64 cpus"), 0, "64 cpus"),
    (RayJobState(at=STARTED, deployment_status="Failed", reason="DeadlineExceeded"), 1, "activeDeadlineSeconds"),
    (
        RayJobState(
            at=STARTED, deployment_status="ValidationFailed", reason="ValidationFailed", message="no entrypoint"
        ),
        1,
        "is not valid: no entrypoint",
    ),
    (RayJobState(at=STARTED, deployment_status="Complete", job_status="STOPPED"), 1, "was stopped"),
]


@pytest.mark.parametrize(("state", "code", "cause"), RAYJOBS, ids=lambda value: getattr(value, "deployment_status", ""))
async def test_a_rayjob_that_never_had_a_cluster_says_why(
    tmp_path: Path, state: RayJobState, code: int, cause: str
) -> None:
    id_ = RayJobId("team-a", "nightly", "u-1")
    record = RayJobRecord(namespace="team-a", name="nightly", uid="u-1", states=(state,))
    await small_store(tmp_path / "store").put(id_.key, encode_record(record))
    from_store = ("--store", f"file://{tmp_path}/store", "--cache-dir", str(tmp_path / "cache"))
    async with built_server(tmp_path / "store", tmp_path / "served") as server, serving(server) as url:
        for place in (from_store, ("--server", url)):
            shown = await asyncio.to_thread(command, "team-a/nightly", *place)
            assert (shown.exit_code, cause in shown.stdout) == (code, True), shown.output
            assert shown.stdout.splitlines()[0].endswith(": RayJob team-a/nightly, which never had a cluster")
            nobody = await asyncio.to_thread(command, "team-a/nobody", *place)
            assert (nobody.exit_code, "nothing is known of a RayJob team-a/nobody" in nobody.output) == (2, True)


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_has_words_for_a_terminal(outcome: Outcome) -> None:
    printed = io.StringIO()
    counts = Counts(attempts=3, failures=1, recovered=0)
    ReportScreen(Console(file=printed)).show(
        Report("team-a", "train", "session_1", None, STARTED, outcome, counts, None, (), (), None, (), (), (), ())
    )
    assert printed.getvalue().splitlines()[0] == f"{VERDICTS[outcome]}: session team-a/train/session_1"
    assert outcome.is_well is (outcome in (Outcome.OK, Outcome.RUNNING))


async def lose_events(store: ObjectStore) -> None:
    beat = NodeRecord(
        node_id=HEAD,
        role="head",
        started_at=STARTED,
        beat_at=STARTED + timedelta(minutes=1),
        interval_seconds=30,
        delivery=Delivery(ray_dropped_events=17),
    )
    await store.put(node_record_key(SMALL, HEAD), encode_record(beat))


async def test_a_server_answers_the_same_as_its_store(ingested_moments: Moments) -> None:
    name = f"{SESSION.namespace}/{SESSION.cluster}/{SESSION.session}/golden-fail"
    async with golden_server(ingested_moments["final"]) as server, serving(server) as url:
        shown = await asyncio.to_thread(command, name, "--server", url)
    assert shown.exit_code == 1, shown.output
    assert "the driver left with exit code 7" in shown.stdout


async def test_a_server_that_has_no_report_is_quoted_in_words(ingested_moments: Moments) -> None:
    name = f"{SESSION.namespace}/{SESSION.cluster}/{SESSION.session}/nope"
    async with golden_server(ingested_moments["final"]) as server, serving(server) as url:
        shown = await asyncio.to_thread(command, name, "--server", url)
    assert (shown.exit_code, "it answered 404: there is no job nope" in shown.stderr) == (2, True), shown.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a", "--store", "file:///nowhere"), "<namespace>/<cluster>/<session>[/<job>], or <namespace>/<RayJob>"),
        (("a/b/c",), "say where the history is: --store or --server"),
        (("a/b/c", "--store", "file:///tmp", "--server", "http://x"), "give --store or --server, not both"),
        (("a/b/c", "--store", "ftp://x"), "storage URL"),
        (("a/b/c", "--server", "x:80"), "--server='x:80' cannot be used: it must begin with http://"),
        (("a/b/c", "--server", "http://x", "--token-file", "/no/f"), "--token-file='/no/f' cannot be used: it cannot"),
    ],
)
def test_what_cannot_be_answered_is_exit_code_2(arguments: tuple[str, ...], said: str) -> None:
    shown = command(*arguments)
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert said in shown.stderr


def test_a_session_or_job_that_does_not_exist_is_exit_code_2(tmp_path: Path) -> None:
    asyncio.run(put_small(small_store(tmp_path / "store"), is_ended=True, is_fine=True))
    place = ("--store", f"file://{tmp_path}/store", "--cache-dir", str(tmp_path / "cache"))
    missing = command("a/b/c", *place), command(f"{NAME}/nope", *place), command("a/b/latest", *place)
    assert [shown.exit_code for shown in missing] == [2, 2, 2]
    assert "there is no session a/b/c" in missing[0].stderr
    assert "there is no job nope" in missing[1].stderr
