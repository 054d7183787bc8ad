"""The page of a report, and its short form, where there is nothing to report."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from raykeeper.history.http.pages.report import report_body, why_failed
from raykeeper.history.report.model import Counts, Outcome, Report
from raykeeper.history.report.unknowns import NOTHING_SEALED

BLANK = Report(
    "team-a",
    "train",
    "session_1",
    None,
    NOTHING_SEALED,
    Outcome.OK,
    Counts(0, 0, 0),
    None,
    (),
    (),
    None,
    (),
    (),
    (),
    (),
)
WELL = replace(BLANK, as_of=datetime(2026, 11, 16, tzinfo=UTC), counts=Counts(3, 0, 0))


def test_a_session_of_which_nothing_is_recorded_is_not_shown_as_a_success() -> None:
    assert "Nothing is recorded that could have failed." in report_body(BLANK)
    assert "no event has arrived" in report_body(BLANK)
    assert "1970" not in report_body(BLANK)
    assert "badge good" not in why_failed(BLANK)


def test_a_session_that_went_well_is_shown_as_a_success() -> None:
    assert "Nothing failed." in report_body(WELL)
    assert "2026-11-16" in report_body(WELL)
    assert "badge good" in why_failed(WELL)


def test_a_report_leads_to_the_pages_about_the_same() -> None:
    assert "/s/team-a/train/session_1/overview" in report_body(WELL)
    assert "/s/team-a/train/session_1/job/nightly" in report_body(replace(WELL, job="nightly"))
