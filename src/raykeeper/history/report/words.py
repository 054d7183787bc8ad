"""What is said about a report in a line: in a terminal, in Markdown, on pages. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from raykeeper.history.entities.job import script_name
from raykeeper.history.report.model import Excerpt, Headline, LineKind, Outcome, Report, ShownLine
from raykeeper.history.report.unstarted import NO_CLUSTER, NO_SESSION
from raykeeper.history.store.session_state import DOUBTFUL
from raykeeper.history.text import counted

VERDICTS = {
    Outcome.OK: "nothing failed",
    Outcome.FAILED: "failed",
    Outcome.WITH_FAILURES: "succeeded with failures",
    Outcome.STOPPED: "stopped by its user",
    Outcome.RUNNING: "running, nothing has failed so far",
    Outcome.FAILING: "running with failures",
}
_DOUBTED = {
    Outcome.RUNNING: f"{DOUBTFUL}, nothing has failed so far",
    Outcome.FAILING: f"{DOUBTFUL}, with failures",
}
_RECOVERED = "succeeded, every failure was recovered by a retry"
_NOTHING_RAN = "nothing is recorded that could have failed"
_JOBS_SHOWN = 5


def verdict(report: Report) -> str:
    if report.is_blank:
        return _NOTHING_RAN
    if report.is_recovered:
        return _RECOVERED
    return _DOUBTED[report.outcome] if report.is_doubtful else VERDICTS[report.outcome]


def subject(report: Report) -> str:
    """What the report is about: a script by its name, a job, a session, or a cluster that never had one."""
    if report.session == NO_SESSION:
        return _unstarted(report)
    session = f"{report.namespace}/{report.cluster}/{report.session}"
    if report.job is None:
        return f"session {session}"
    script = script_name(report.jobs[0].entrypoint) if report.jobs else ""
    return f"{f'{script}, ' if script else ''}job {report.job} of {session}"


def attempts_in_words(report: Report) -> str:
    """How many attempts failed, and how each job ended."""
    counts = report.counts
    hidden = f", {counts.recovered:,} recovered by a retry" if counts.recovered else ""
    failed = [f"{counts.failures:,} of {counts.attempts:,} attempts failed{hidden}"] if counts.attempts else []
    jobs = [_job_in_words(job.submission_id or job.job_id, job.status, job.exit_code) for job in report.jobs]
    more = [f"{len(jobs) - _JOBS_SHOWN} more jobs"] if len(jobs) > _JOBS_SHOWN else []
    return "; ".join([*failed, *jobs[:_JOBS_SHOWN], *more])


def _job_in_words(name: str | None, status: str, exit_code: int | None) -> str:
    return f"job {name} is {status}{'' if exit_code is None else f' with exit code {exit_code}'}"


def whose(headline: Headline) -> str:
    """Where it was raised and by whom, in one line."""
    where = (
        f"{headline.where.text}{f' in {headline.where.function}' if headline.where.function else ''}"
        if (headline.where)
        else ""
    )
    return " · ".join(part for part in (where, headline.what) if part)


def shortened_lines(excerpt: Excerpt, limit: int | None) -> Iterator[ShownLine]:
    """The first and last lines of a long excerpt, with a sign between them."""
    lines = excerpt.lines
    if limit is None or len(lines) <= limit:
        yield from lines
        return
    yield from lines[:1]
    yield ShownLine(f"  ... {counted(len(lines) - limit, 'line')}", LineKind.FOLDED)
    yield from lines[-(limit - 1) :]


def _unstarted(report: Report) -> str:
    """What a report without a session is about."""
    if report.job is None:
        return f"cluster {report.namespace}/{report.cluster}, which has no session"
    has_cluster = report.cluster != NO_CLUSTER
    missing = f"whose cluster {report.cluster} has no session" if has_cluster else "which never had a cluster"
    return f"RayJob {report.namespace}/{report.job}, {missing}"
