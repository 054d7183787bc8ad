"""`raykeeper logs`: log files of sessions that are over, from a store or from a server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from raykeeper.cli.app import app
from support.recorded_failures import RecordedFailures
from support.serving_history import serving
from support.whole_history import built_server

NAME = "recorded/named-trainer/latest"


@pytest.fixture
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("cache"))


def command(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["logs", *arguments])


def test_a_session_lists_its_files(recorded_failures: RecordedFailures, cache: str) -> None:
    shown = command(NAME, "--store", recorded_failures.store.as_uri(), "--cache-dir", cache)
    assert shown.exit_code == 0, shown.output
    assert any(line.endswith(" job-driver-nightly.log") for line in shown.stdout.splitlines())


def test_a_job_prints_the_log_of_its_driver(recorded_failures: RecordedFailures, cache: str) -> None:
    store = ("--store", recorded_failures.store.as_uri(), "--cache-dir", cache)
    shown = command(f"{NAME}/nightly", *store)
    assert "ActorDiedError: The actor died unexpectedly before finishing this task." in shown.stdout
    assert len(command(f"{NAME}/nightly", "--tail", "3", *store).stdout.splitlines()) == 3


def test_a_file_is_printed_by_its_name(recorded_failures: RecordedFailures, cache: str) -> None:
    store = ("--store", recorded_failures.store.as_uri(), "--cache-dir", cache)
    listed = [line.split() for line in command(NAME, *store).stdout.splitlines()]
    node, _, file = next(line for line in listed if line[2].endswith("-618.err"))
    shown = command(NAME, "--file", file, "--node", node, *store)
    assert shown.stdout.splitlines()[-1] == "CUDA error: out of memory while allocating 4.00 GiB"


@pytest.mark.parametrize("wanted", [(f"{NAME}/nope",), (NAME, "--actor", "abc"), (NAME, "--file", "x", "--node", "y")])
def test_what_is_not_there_is_said_so(wanted: tuple[str, ...], recorded_failures: RecordedFailures, cache: str) -> None:
    shown = command(*wanted, "--store", recorded_failures.store.as_uri(), "--cache-dir", cache)
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert shown.stderr.startswith("raykeeper: ")


async def test_a_server_answers_the_same_as_its_store(recorded_failures: RecordedFailures, tmp_path: Path) -> None:
    store = ("--store", recorded_failures.store.as_uri(), "--cache-dir", str(tmp_path / "cache"))
    async with built_server(recorded_failures.store, tmp_path / "served") as server, serving(server) as url:
        for wanted in ((f"{NAME}/nightly",), (NAME,)):
            stored, asked = [
                (await asyncio.to_thread(command, *wanted, *source)).stdout for source in (store, ("--server", url))
            ]
            files = {line.split()[-1] for line in stored.splitlines() if line}
            assert asked
            assert len(wanted[0]) == len(NAME) or asked == stored
            assert len(wanted[0]) != len(NAME) or files == {line.split()[-1] for line in asked.splitlines()}


def test_a_source_is_needed() -> None:
    assert "say where the history is: --store or --server" in command(NAME).stderr
