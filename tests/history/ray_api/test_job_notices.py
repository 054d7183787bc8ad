"""Jobs whose end no poll saw: Ray's own event file tells of it."""

from __future__ import annotations

from typing import Any

import pytest

from raykeeper.history.entities.job_list import NO_REASON, JobNotice, job_notices, with_notices


def line(submission_id: str, message: str, at: int) -> dict[str, Any]:
    """As Ray's job manager writes it."""
    return {"message": message, "timestamp": str(at), "custom_fields": {"submission_id": submission_id}}


def started(submission_id: str, at: int) -> dict[str, Any]:
    return line(submission_id, f"Started a ray job {submission_id}.", at)


def completed(submission_id: str, status: str, at: int, reason: str = "") -> dict[str, Any]:
    return line(submission_id, f"Completed a ray job {submission_id} with a status {status}.{reason}", at)


def polled(submission_id: str, status: str) -> dict[str, Any]:
    return {"type": "SUBMISSION", "submission_id": submission_id, "status": status, "message": "as polled"}


def test_a_job_is_known_by_its_start_its_end_and_the_reason_of_it() -> None:
    reason = " runtime_env setup failed: no. Not at all."
    assert job_notices([started("a", 1), completed("a", "FAILED", 3, reason)]) == {
        "a": JobNotice(1000, 3000, "FAILED", reason.strip())
    }


def test_an_id_that_was_used_again_counts_with_its_last_job() -> None:
    assert job_notices([started("a", 1), completed("a", "FAILED", 2), started("a", 5)]) == {"a": JobNotice(5000)}


@pytest.mark.parametrize(
    "event",
    [
        {"message": "Started a ray job a.", "timestamp": "1"},
        {"message": None, "timestamp": "1", "custom_fields": {"submission_id": "a"}},
        {"message": "Started a ray job a.", "timestamp": "1", "custom_fields": "a"},
        line("b", "Completed a ray job a with a status FAILED.", 1),
        completed("a", "None", 1),
    ],
)
def test_other_lines_tell_of_no_end(event: dict[str, Any]) -> None:
    assert [notice.status for notice in job_notices([event]).values() if notice.status] == []


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ("SUCCEEDED", "Job finished successfully."),
        ("STOPPED", "Job was intentionally stopped."),
        ("FAILED", NO_REASON),
    ],
)
def test_a_job_that_ended_after_the_last_poll_has_ended(status: str, message: str) -> None:
    [job] = with_notices([polled("a", "RUNNING")], {"a": JobNotice(1000, 3000, status)}, "")
    assert (job["status"], job["message"], job["end_time"]) == (status, message, 3000)


def test_what_a_poll_said_of_an_end_stays() -> None:
    job = polled("a", "FAILED")
    assert with_notices([job], {"a": JobNotice(1000, 3000, "STOPPED")}, "") == [job]


def test_a_job_that_only_started_stays_open() -> None:
    job = polled("a", "RUNNING")
    assert with_notices([job], {"a": JobNotice(1000)}, "") == [job]


def test_a_job_that_nobody_polled_is_a_job_of_the_head() -> None:
    [job] = with_notices([], {"a": JobNotice(1000, 3000, "FAILED", "why")}, "ab")
    known = {name: job[name] for name in ("type", "submission_id", "status", "message", "driver_node_id")}
    assert known == {
        "type": "SUBMISSION",
        "submission_id": "a",
        "status": "FAILED",
        "message": "why",
        "driver_node_id": "ab",
    }
    assert (job["start_time"], job["end_time"]) == (1000, 3000)
