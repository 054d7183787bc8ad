"""What people say happened in the recorded failures, and how a report compares with that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from raykeeper.history.report.model import Confidence, Report
from recording.archives import ARCHIVES

OLDER = {"-ray252": "2.52"}
"""How archives of an older Ray end; what happened is the same."""
_NEWEST = "2.60"


@dataclass(frozen=True)
class Truth:
    """What happened, as whoever let it happen wrote it down before."""

    library: str
    happens: str
    outcome: str
    cause: str = ""
    where: str = ""
    who: str = ""
    then: tuple[str, ...] = ()
    hidden: str = ""
    likely: bool = False
    missed: str = ""
    """What the report says instead, where it is not right yet."""
    batch: int = 1
    """Those of a later one were written when the rules had been made for all before."""


def read_truths() -> dict[str, Truth]:
    """By the archive's name, of the newest Ray."""
    told = yaml.safe_load((ARCHIVES / "truths.yaml").read_text())
    return {name: Truth(**facts | {"then": tuple(facts.get("then", ()))}) for name, facts in told.items()}


def truth_of(archive: str, truths: dict[str, Truth]) -> tuple[str, Truth] | None:
    """The version of Ray and the truth; None for an archive that is about something else."""
    for suffix, version in OLDER.items():
        if archive.endswith(suffix):
            return version, truths[archive.removesuffix(suffix)]
    return (_NEWEST, truths[archive]) if archive in truths else None


def differences(report: Report, truth: Truth) -> Iterator[str]:
    """What a person would miss in the report, or call wrong."""
    if report.outcome.value != truth.outcome:
        yield f"the outcome is {report.outcome.value}, not {truth.outcome}"
    if truth.hidden and not any(truth.hidden in cause.title for cause in report.causes):
        yield f"no cause tells of {truth.hidden}"
    if truth.cause:
        yield from _of_headline(report, truth)
    elif report.headline is not None:
        yield f"there is a headline: {report.headline.text}"


def _of_headline(report: Report, truth: Truth) -> Iterator[str]:
    told = report.headline
    if told is None:
        yield "there is no headline"
        return
    if truth.cause not in told.text:
        yield f"the headline is {told.text!r}"
    if truth.where and (told.where is None or told.where.text != truth.where):
        yield f"the line is {told.where.text if told.where else 'not named'}, not {truth.where}"
    if truth.who not in told.what:
        yield f"it happened to {told.what!r}"
    yield from (f"the next sentence is {told.then!r}" for words in truth.then if words not in told.then)
    if truth.likely and told.confidence is Confidence.CONFIRMED:
        yield "it is called confirmed"
