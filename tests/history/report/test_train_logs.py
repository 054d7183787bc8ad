"""Ray Train's own logs: which rank raised what, and whether the run went on after it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from raykeeper.history.report.input import ReportInput
from raykeeper.history.report.log_excerpts import LibraryLog
from raykeeper.history.report.model import Confidence, JobOutcome
from raykeeper.history.report.rules.train import failed_rank, failed_run_of_job
from raykeeper.history.report.train_logs import TrainError, train_errors

TRACE = (
    "Error in training function:\nTraceback (most recent call last):\n"
    '  File "/app/train.py", line 13, in loop\n    step()\nFloatingPointError: loss is NaN\n'
)
RUN = {"run_name": "night", "job_id": "03000000"}


def line(message: str, seconds: int, **more: Any) -> str:
    return json.dumps({"levelname": "ERROR", "message": message, "timestamp_ns": seconds * 10**9, **RUN, **more}) + "\n"


def errors_of(
    *decisions: tuple[int, str], ranks: tuple[int, ...] = (1,), job: str | None = None
) -> tuple[TrainError, ...]:
    controller = "".join(line(f"[FailurePolicy] {words}\n  Source: worker group", at) for at, words in decisions)
    logs = [LibraryLog("controller", "node", "train/ray-train-app-controller-c.log", controller)]
    for rank in ranks:
        text = line("Started", 1, world_rank=rank) + line(TRACE, 5, world_rank=rank, actor_id="ab", worker_id="cd")
        logs.append(LibraryLog("worker", "node", f"train/ray-train-app-worker-{rank}.log", text))
    return train_errors(logs, job)


def test_a_rank_that_raised_is_named_with_its_line() -> None:
    [error] = errors_of((6, "RAISE"))
    told = failed_rank(error)
    assert told.title == "rank 1 of run night raised FloatingPointError: loss is NaN (train.py:13)"
    assert (told.confidence, told.what) == (Confidence.CONFIRMED, "Ray Train rank 1 of run night")
    assert (error.excerpt.address.line, error.excerpt.address.actor_id) == (2, "ab")


@pytest.mark.parametrize(
    ("decisions", "is_recovered"),
    [
        (((6, "RAISE"),), False),
        (((6, "RETRY"),), True),
        (((4, "RETRY"), (6, "RAISE")), False),
        (((6, "RETRY"), (9, "RAISE")), True),
        ((), False),
    ],
    ids=["given up", "tried again", "given up in the end", "tried again at first", "nobody decided"],
)
def test_what_the_controller_decided_next_says_whether_it_went_on(
    decisions: tuple[tuple[int, str], ...], is_recovered: bool
) -> None:
    [error] = errors_of(*decisions)
    assert error.is_recovered is is_recovered


def test_ranks_that_fail_alike_are_one() -> None:
    [error] = errors_of((6, "RAISE"), ranks=(3, 0, 1, 2, 5, 4))
    assert failed_rank(error).title.startswith("ranks 0, 1, 2, 3 and 2 more of run night raised")


def test_runs_of_other_jobs_and_lines_that_cannot_be_read_are_none_of_it() -> None:
    assert errors_of((6, "RAISE"), job="07000000") == ()
    assert train_errors([LibraryLog("worker", "node", "f", '{"message": \n{"message": 3}\nplain\n')], None) == ()


def test_a_driver_that_asked_for_the_run_failed_of_it(tmp_path: Path) -> None:
    wrapper = (
        'Traceback (most recent call last):\n  File "/app/train.py", line 30, in main\n    fit()\n'
        "ray.train.WorkerGroupError: Training failed due to worker errors:\n"
    )
    about = ReportInput((), train_errors=errors_of((6, "RAISE")))
    told = failed_run_of_job(_job(wrapper), about)
    assert told is not None
    assert told.because_of == about.train_errors[0].id
    assert failed_run_of_job(_job(wrapper.replace("ray.train.WorkerGroupError", "KeyError")), about) is None
    assert failed_run_of_job(_job(wrapper), ReportInput((), train_errors=errors_of((6, "RETRY")))) is None


def _job(words: str) -> JobOutcome:
    return JobOutcome("03000000", "nightly", "FAILED", None, words, 1, "python train.py", None, None)
