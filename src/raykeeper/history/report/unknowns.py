"""What a report cannot know: data that never arrived, cannot be read, or was dropped before anybody kept it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from raykeeper.history.ingest.session import Session
from raykeeper.history.report.model import JobOutcome
from raykeeper.history.store.kube_facts import KubeFacts
from raykeeper.history.store.session_state import State
from raykeeper.layout.records import RAYLET_KILLED
from raykeeper.times import EPOCH

_GAPS_NAMED = 5
NOTHING_SEALED = EPOCH
"""A session is "as of" this where no event of it is in the store."""


def unknowns_of(session: Session) -> Iterator[tuple[str, str]]:
    """Each kind of missing data, with what is missing."""
    if not session.progress.is_done:
        done, total = session.progress.done_bytes, session.progress.total_bytes
        yield "not read yet", f"{total - done} of {total} bytes of events are still being read"
    if session.as_of <= NOTHING_SEALED:
        yield (
            "no events",
            "no event of Ray's ever arrived: whether something ran or failed, only logs and jobs can tell",
        )
    yield from _gaps(session)
    yield from _dropped(session)
    yield from _left_behind(session)
    if session.state.reason == RAYLET_KILLED:
        yield "no end", "Ray was killed, so what it had not sent a second before is missing and open tasks stay open"
    elif session.state.is_crash:
        yield "no end", "the head never said that it ended, so its last seconds are missing and open tasks stay open"
    elif session.state.state is State.RUNNING and session.as_of > NOTHING_SEALED:
        yield "still running", f"what happened after {session.as_of:%Y-%m-%d %H:%M:%S} UTC is not in it"


def unknowns_of_kubernetes(facts: KubeFacts, cluster_uid: str) -> Iterator[tuple[str, str]]:
    """What Kubernetes said and nobody has; of a session outside Kubernetes nothing is missing."""
    if cluster_uid and facts.is_empty:
        yield "nothing of Kubernetes", "nobody recorded what happened to its pods, so Ray's own words are all there is"
    if not facts.is_complete:
        lost = f"{facts.lost_pods} states of pods and {facts.lost_events} Events were lost"
        rest = f"{facts.unread_segments} older objects were left out, {facts.unreadable} lines could not be read"
        yield "lost of Kubernetes", f"{lost}, {rest}"


def unknowns_of_definitions(attempts: int, jobs: int) -> Iterator[tuple[str, str]]:
    """Tasks that are in no list, since a driver that was started without Ray's event variables defines none."""
    if attempts:
        ran = f"{attempts} attempts of {jobs} jobs ran" if jobs != 1 else f"{attempts} attempts of 1 job ran"
        why = "its driver sends no events (it was started without RAY_enable_ray_event=1), or they were lost"
        yield "undefined tasks", f"{ran} and are in no list, because nothing says what they are: {why}"


def unknowns_of_drivers(jobs: Iterable[JobOutcome]) -> Iterator[tuple[str, str]]:
    """How drivers ended that nobody submitted: Ray calls each that is over SUCCEEDED."""
    names = [job.job_id or "" for job in jobs if job.is_unjudged]
    if names:
        shown = ", ".join(names[:_GAPS_NAMED]) + (", ..." if len(names) > _GAPS_NAMED else "")
        yield "ends of drivers", f"Ray's events do not say how a driver ended that was not submitted as a job: {shown}"


def _gaps(session: Session) -> Iterator[tuple[str, str]]:
    for gap in session.gaps[:_GAPS_NAMED]:
        lines = f"{gap.lines} lines" if gap.lines else "an unknown number of lines"
        yield "unreadable", f"{lines} of {gap.key}: {gap.reason}"
    if len(session.gaps) > _GAPS_NAMED:
        yield "unreadable", f"{len(session.gaps) - _GAPS_NAMED} more objects could not be read"


def _dropped(session: Session) -> Iterator[tuple[str, str]]:
    """The last word of each node counts: that of its end, where it had one."""
    last = {node.node_id: node.delivery for node in session.nodes} | {end.node_id: end.delivery for end in session.ends}
    dropped = sum(delivery.ray_dropped_events for delivery in last.values())
    set_aside = sum(delivery.events_set_aside for delivery in last.values())
    lost_logs = sum(delivery.lost_log_bytes for delivery in last.values())
    if dropped:
        yield "dropped by Ray", f"{dropped} events were dropped by Ray itself before they reached the collector"
    if set_aside:
        yield "set aside", f"{set_aside} events could not be understood and were set aside"
    if lost_logs:
        yield "lost logs", f"{lost_logs} bytes of logs were deleted before they could be kept"


def _left_behind(session: Session) -> Iterator[tuple[str, str]]:
    for end in session.ends:
        if not end.is_complete:
            sizes = f"{end.missing_event_bytes} bytes of events and {end.missing_log_bytes} bytes of logs"
            yield "left behind", f"node {end.node_id} ended before {sizes} were sent"
    ended = {end.node_id for end in session.ends}
    silent = [node.node_id for node in session.nodes if node.node_id not in ended and node.role == "worker"]
    if silent and session.ended_at is not None:
        nodes = "1 worker node" if len(silent) == 1 else f"{len(silent)} worker nodes"
        yield "silent nodes", f"the last seconds of {nodes} are missing: no word of an end came from there"
