"""Failures of Ray Train that no task tells of: what ranks raised."""

from __future__ import annotations

from raykeeper.history.report.input import Explanation, ReportInput
from raykeeper.history.report.model import Confidence, Evidence, JobOutcome, Who, WhoKind
from raykeeper.history.report.rules.drivers import driver_end
from raykeeper.history.report.rules.entrypoints import words_of
from raykeeper.history.report.rules.start import NAMED, UNNAMED, at
from raykeeper.history.report.tracebacks import is_wrapper
from raykeeper.history.report.train_logs import TrainError
from raykeeper.history.text import shortened
from raykeeper.times import from_ns

FAILED_RANK = "failed_rank"
_RANKS_SHOWN = 4
_OF_TRAIN = "-packages/ray/train/"


def failed_rank(error: TrainError) -> Explanation:
    """What a rank raised, or several alike."""
    who = Who(WhoKind.RANK, _ranks(error))
    ranks = f"{'rank' if len(error.ranks) == 1 else 'ranks'} {_ranks(error)}"
    evidence = Evidence(
        "log", "\n".join(line.text for line in error.excerpt.lines), from_ns(error.at_ns), error.excerpt.address
    )
    return Explanation(
        shortened(f"{ranks} of run {error.run} raised {error.error}{at(error.where)}"),
        Confidence.CONFIRMED if error.where else Confidence.LIKELY,
        (evidence,),
        error.at_ns,
        subject=error.id,
        rule=FAILED_RANK,
        error=shortened(error.error),
        where=error.where,
        who=who,
        what=f"{who.text} of run {error.run}",
        basis=NAMED if error.where else UNNAMED,
        excerpts=(error.excerpt,),
    )


def _ranks(error: TrainError) -> str:
    shown = ", ".join(map(str, error.ranks[:_RANKS_SHOWN]))
    return f"{shown} and {len(error.ranks) - _RANKS_SHOWN} more" if len(error.ranks) > _RANKS_SHOWN else shown


def failed_run_of_job(job: JobOutcome, report_input: ReportInput) -> Explanation | None:
    """The driver asked for a training run, and a rank of it had raised."""
    trace = driver_end(job).fatal
    lasting = [one for one in report_input.train_errors if not one.is_recovered]
    if job.status != "FAILED" or trace is None or not lasting:
        return None
    told = [one for one in lasting if any(one.error == raised.error for raised in trace.raised)]
    is_by_train = any(_OF_TRAIN in frame.path for frame in trace.last.frames[-1:])
    is_given_up = is_by_train or any(is_wrapper(one.error) for one in trace.raised)
    if not told and not is_given_up:
        return None
    root = (told or lasting)[0]
    why = failed_rank(root)
    return Explanation(why.title, why.confidence, (words_of(job),), root.at_ns, because_of=root.id)
