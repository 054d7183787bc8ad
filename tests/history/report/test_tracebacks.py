"""Tracebacks and last words: what a reader sees first is the user's own."""

from __future__ import annotations

import pytest

from raykeeper.history.report.last_words import last_line_of, last_words_of
from raykeeper.history.report.model import LogSlice
from raykeeper.history.report.rules.drivers import told_by_message
from raykeeper.history.report.tracebacks import folded, is_raised_by_library, user_frame
from raykeeper.history.text import end_of

RAY = '  File "/env/lib/python3.11/site-packages/ray/_private/worker.py", line 3009, in get\n    values = x()\n'
SERVE = '  File "/env/lib/python3.11/site-packages/ray/serve/_private/client.py", line 283, in wait\n    raise x\n'
OWN = '  File "/app/train.py", line 34, in main\n    ray.get(refs)\n'


def test_the_deepest_frame_of_the_users_own_code_is_named() -> None:
    deeper = OWN.replace("34", "40")
    assert user_frame(OWN + deeper + RAY + RAY) == "train.py:40"
    assert user_frame(RAY + '  File "python/ray/_raylet.pyx", line 2205, in ray._raylet.execute_task\n') == ""


def test_frames_of_others_are_folded_and_the_users_stay() -> None:
    trace = f"Traceback (most recent call last):\n{OWN}{RAY}{RAY}{RAY}KeyError: 'x'"
    assert folded(trace).splitlines() == [
        "Traceback (most recent call last):",
        *OWN.splitlines(),
        "  ... 3 frames of Ray and other packages",
        "KeyError: 'x'",
    ]
    assert folded(OWN + RAY) == (OWN + RAY).rstrip("\n")


def test_only_rays_libraries_raise_in_the_name_of_others() -> None:
    assert is_raised_by_library(OWN + SERVE)
    assert not is_raised_by_library(OWN + RAY)
    assert not is_raised_by_library(SERVE + OWN)


DUMP = "*** SIGSEGV received at time=1 ***\nPC: @ 0x7f (unknown) epoll_wait\nFatal Python error: Segmentation fault\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("loading\nCUDA error: out of memory\n", "CUDA error: out of memory"),
        (f"cache: arena 7 is corrupt\n{DUMP}", "cache: arena 7 is corrupt"),
        (DUMP, "Fatal Python error: Segmentation fault"),
        ("INFO 2026-11-17 08:10:12,593 chat_Model x -- Started initializing replica.\n", ""),
        ("[2026-11-17 08:13:21,340 E 421 421] core_worker.cc:2465: Actor with class name\n", ""),
    ],
    ids=["its last line", "before a crash handler's", "a bare crash", "a logger's", "of Ray's core"],
)
def test_the_last_words_of_a_process_are_its_own(text: str, line: str) -> None:
    logs = (LogSlice("node", "worker-1.out", "step 3\n"), LogSlice("node", "worker-1.err", text))
    assert last_line_of(logs) == line
    assert "worker-1.out:\nstep 3" in [fact.text for fact in last_words_of(logs)]


def test_a_process_without_logs_had_no_last_words() -> None:
    assert (last_line_of(()), last_words_of(())) == ("", ())


def test_the_end_of_a_text_begins_with_a_whole_line() -> None:
    text = "first line\nsecond line\nthird"
    assert end_of(text, 100) == text
    assert end_of(text, 9) == "...\nthird"
    assert end_of(text, 17) == "...\nsecond line\nthird"
    assert end_of("x" * 50, 10) == "...\n" + "x" * 10


def test_the_first_look_at_a_job_finds_the_exception_above_rays_advice() -> None:
    wrapped = (
        "ray.exceptions.UserCodeException: UDF failed to process a data block.\nTo change retry attempts, configure x"
    )
    heading = "Job entrypoint command failed with exit code 1, last available logs (truncated to 20,000 chars):\n"
    message = (
        f"{heading}    return float(text)\nValueError: no number\n\nThe above exception was the cause:\n\n{wrapped}"
    )
    assert told_by_message(message) == "ValueError: no number"
    assert told_by_message(f"{heading}gave up") == "gave up"
