"""Exceptions that say too little lead to what their process had written before."""

from __future__ import annotations

import pytest

from raykeeper.history.report.model import LogSlice
from raykeeper.history.report.written_before import exception_above, is_of_command, points_elsewhere, words_of_command

CHILD = (
    "EngineCore failed to start.\nTraceback (most recent call last):\n"
    '  File "/app/engine.py", line 12, in load_weights\n    raise ValueError("40 layers")\nValueError: 40 layers\n'
)
BOXED = "".join(f"(EngineCore pid=9) ERROR 10-15 12:00:00 [core.py:708] {line}\n" for line in CHILD.splitlines())
POINTER = "RuntimeError: Engine core initialization failed. See root cause above."


@pytest.mark.parametrize("text", [CHILD, BOXED])
def test_an_exception_that_says_to_look_above_leads_to_what_is_there(text: str) -> None:
    found = exception_above(POINTER, (LogSlice("n", "worker-1.out", "loading\n"), LogSlice("n", "worker-1.err", text)))
    assert found is not None
    assert found.raised.error == "ValueError: 40 layers"
    assert found.raised.users_frame is not None
    assert found.raised.users_frame.location.text == "engine.py:12"
    assert found.excerpt.address.file == "worker-1.err"


def test_an_exception_that_says_enough_leads_nowhere() -> None:
    logs = (LogSlice("n", "worker-1.err", CHILD),)
    assert exception_above("ValueError: no engine", logs) is None
    assert exception_above(POINTER, ()) is None
    assert exception_above("ValueError: 40 layers", logs) is None


@pytest.mark.parametrize(
    "error",
    [
        POINTER,
        "EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.",
        "RuntimeError: worker failed, check the logs for details",
    ],
)
def test_words_that_only_point_elsewhere(error: str) -> None:
    assert points_elsewhere(error)


@pytest.mark.parametrize("error", ["ValueError: above the limit", "KeyError: 'logs'", "OSError: see 'a.txt'"])
def test_words_that_are_about_something_else(error: str) -> None:
    assert not points_elsewhere(error)


def test_what_a_command_wrote_is_told_beside_its_exit_code() -> None:
    error = "subprocess.CalledProcessError: Command '['gzip', 'a.gz']' returned non-zero exit status 1."
    logs = (LogSlice("n", "worker-1.err", ":job_id:01\ngzip: a.gz: not in gzip format\n"),)
    assert is_of_command(error)
    assert words_of_command(error, logs) == "gzip: a.gz: not in gzip format"
    assert words_of_command("ValueError: 3", logs) == ""
