"""Failures of Ray Serve that no task and no process tells of: requests, and replicas that Serve itself gave up."""

from __future__ import annotations

from raykeeper.history.report.input import Explanation, ReportInput
from raykeeper.history.report.model import Address, Confidence, Evidence, JobOutcome, WhoKind
from raykeeper.history.report.naming import short
from raykeeper.history.report.rules.drivers import driver_end
from raykeeper.history.report.rules.entrypoints import words_of
from raykeeper.history.report.rules.start import NAMED, UNNAMED, at
from raykeeper.history.report.serve_logs import ServeError, ServeRecord
from raykeeper.history.text import counted, shortened

FAILED_REQUESTS = "failed_requests"
FAILED_REPLICA = "failed_replica"
_OF_SERVE = "-packages/ray/serve/"


def serve_error(error: ServeError, record: ServeRecord) -> Explanation:
    """What replicas raised, over requests or before they could take any."""
    who = short(error.who)
    times = counted(error.times, "replica" if error.is_of_replica else "request")
    said = f"{who} raised {error.error}{at(error.where)}"
    title = f"{said}, and {times} failed" if not error.is_of_replica else f"{said}, and Serve gave its replicas up"
    evidence = Evidence("log", "\n".join(line.text for line in error.excerpt.lines), None, error.excerpt.address)
    return Explanation(
        shortened(title),
        Confidence.CONFIRMED if error.where else Confidence.LIKELY,
        (evidence,),
        subject=error.id,
        rule=FAILED_REPLICA if error.is_of_replica else FAILED_REQUESTS,
        error=shortened(error.error),
        where=error.where,
        who=error.who,
        what=error.who.text,
        then=record.in_words,
        basis=NAMED if error.where else UNNAMED,
        excerpts=(error.excerpt,),
        requests=0 if error.is_of_replica else error.times,
    )


def unexplained_requests(record: ServeRecord) -> Explanation | None:
    """Requests failed, and no replica says why; None where a replica does."""
    if not record.failed or record.errors:
        return None
    evidence = Evidence("log", f"{record.in_words}, by the access logs of Serve's proxies", None, Address())
    return Explanation(record.in_words, Confidence.POSSIBLE, (evidence,), rule=FAILED_REQUESTS, requests=record.failed)


def failed_application_of_job(job: JobOutcome, report_input: ReportInput) -> Explanation | None:
    """The driver asked Serve for an application, and Serve gave its replicas up."""
    trace = driver_end(job).fatal
    is_of_serve = trace is not None and any(_OF_SERVE in frame.path for frame in trace.users.frames)
    error = next((one for one in report_input.serve.errors if one.is_of_replica), None)
    if job.status != "FAILED" or error is None or (trace is not None and not is_of_serve):
        return None
    told = serve_error(error, report_input.serve)
    return Explanation(told.title, told.confidence, (words_of(job),), because_of=error.id)


def is_of_serve(explanation: Explanation) -> bool:
    return explanation.who is not None and explanation.who.kind in (WhoKind.DEPLOYMENT, WhoKind.APPLICATION)
