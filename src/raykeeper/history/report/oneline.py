"""Why each failed job of a session failed, in one line: for lists, where a whole report is too much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from raykeeper.history.asked import Asked
from raykeeper.history.report.making import make_report

REPORTS_LIMIT = 10  # failed jobs whose first cause is looked for; of the others their own message has to do
_FAILED = ("FAILED", "STOPPED")


async def causes_of_jobs(asked: Asked, statuses: Mapping[str, str]) -> dict[str, str]:
    """First causes of the jobs that failed, by their names; those named first have one."""
    causes = {}
    failed = [name for name, status in statuses.items() if name and status == "FAILED"]
    for name in failed[:REPORTS_LIMIT]:
        report = await make_report(asked, name)
        if report.first_cause:
            causes[name] = report.first_cause.title
    return causes


def why_in_one_line(status: str, message: str | None, cause: str = "") -> str:
    """The cause where one is known, else the end of the job's own message, where a traceback says what was raised."""
    if cause or status not in _FAILED:
        return cause
    lines: Sequence[str] = (message or "").strip().splitlines()
    return lines[-1].strip() if lines else ""
