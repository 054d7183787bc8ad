"""What the tabs of a job show, but for why it failed and its logs. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from raykeeper.history.curves.model import Curves
from raykeeper.history.http.pages.curve_charts import curves_section, usage_section
from raykeeper.history.http.pages.forms import choice, filter_form, link_with, text_field
from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.http.pages.task_tables import functions_section, tasks_section
from raykeeper.history.http.pages.timeline_svg import Scale, axis, lanes
from raykeeper.history.http.pages.widgets import (
    Tone,
    badge,
    duration,
    facts,
    link,
    moment,
    nothing,
    pager,
    quiet,
    status_badge,
    table,
)
from raykeeper.history.jobs_list.find import JobOfSession
from raykeeper.history.overview.job_rows import (
    ATTEMPTS_OF_PAGE,
    ActorRow,
    Actors,
    AttemptRow,
    Attempts,
    AttemptsRequest,
    JobNode,
)
from raykeeper.history.overview.model import JobOverview, Lane, LaneGroup, Mark, Timeline
from raykeeper.history.overview.usage import Usage
from raykeeper.history.text import counted, cut_at_word
from raykeeper.history.urls import actor_path, anchor, failure_path, job_path, log_of_path, node_path, task_path
from raykeeper.layout.keys import SessionId

_GROUPS: tuple[tuple[LaneGroup, str, str], ...] = (
    ("tasks", "Tasks", "This job has no tasks."),
    ("actors", "Actors", "This job has no actors."),
    ("nodes", "Nodes", "No node is known to have run this job."),
    ("kubernetes", "Kubernetes", "Kubernetes said nothing about this cluster while the job ran."),
)
_TOLD_LIMIT = 60  # rows of the table that tells what a picture shows


def timeline_picture(timeline: Timeline) -> Html:
    """Tasks, actors, nodes and Kubernetes over the whole time of the job, also for those without a script."""
    scale = Scale(timeline.begin, timeline.end)
    parts: list[Html] = [tag("h2", "At a glance"), axis(scale, is_beside=True)]
    for group, title, empty in _GROUPS:
        rows = [lane for lane in timeline.lanes if lane.group == group]
        words = timeline.kubernetes if group == "kubernetes" and timeline.kubernetes else empty
        parts += [tag("h3", title), lanes(rows, scale) if rows else tag("p", quiet(words))]
        if left_out := timeline.left_out.get(group, 0):
            parts.append(tag("p", quiet(f"{left_out:,} more are not shown.")))
    return join([*parts, axis(scale, is_beside=True), _told(timeline.lanes)])


def _told(rows: Iterable[Lane]) -> Html:
    """The marks of the picture as a table: for who cannot point at them, and for what is too close together."""
    marks = sorted(((mark, lane) for lane in rows for mark in lane.marks), key=lambda found: found[0].at)
    if not marks:
        return EMPTY
    shown = [_mark_row(mark, lane) for mark, lane in marks[:_TOLD_LIMIT]]
    more = f" ({len(shown)} of {len(marks)})" if len(marks) > len(shown) else ""
    events = table("Events on the timeline", ("What", "When", "Where"), shown, hides_caption=True)
    return tag("details", tag("summary", f"Events on the timeline{more}"), events)


def _mark_row(mark: Mark, lane: Lane) -> tuple[str, ...]:
    return mark.title, moment(mark.at), lane.label


_STATES: dict[str, Tone] = {"FINISHED": "good", "FAILED": "bad", "RUNNING": "busy"}
_STATE_WORDS = {"": "any", "FAILED": "failed", "RUNNING": "running", "FINISHED": "finished"}
_ATTEMPT_HEADERS = ("Function", "Attempt", "State", "Error", "Started", "Took", "Node", "Log")
_ID_CHARS = 12
_MESSAGE_CHARS = 8000
_DEATH_CHARS = 300


def tasks_tab(
    overview: JobOverview,
    session: SessionId,
    attempts: Attempts,
    wanted: AttemptsRequest,
    task: Sequence[AttemptRow],
    task_id: str,
) -> Html:
    """One task in full where one is asked for; then all of them, counted and listed."""
    job, parts = overview.job.id, list[Html]()
    if task_id:
        parts.append(_task(task, task_id, session, job))
    if not overview.counts.attempts:
        return join([*parts, nothing("This job has no tasks.")])
    parts += [tasks_section(overview.counts, overview.tasks), functions_section(overview.functions)]
    return join([*parts, _attempts(attempts, wanted, session, job)])


def _task(attempts: Sequence[AttemptRow], task_id: str, session: SessionId, job: str) -> Html:
    if not attempts:
        return nothing(f"No task {task_id} is recorded.")
    parts = [_attempt(one, session, job) for one in attempts]
    return tag("section", tag("h2", attempts[0].function or "Task"), *parts, class_="panel", id=anchor("t", task_id))


def _attempt(one: AttemptRow, session: SessionId, job: str) -> Html:
    known = facts(
        [
            ("Attempt", join([str(one.attempt_number), " ", _state(one.state)])),
            ("Error", one.error_type),
            ("Started", moment(one.started_at)),
            ("Took", duration(one.took)),
            ("Task", one.task_id),
            ("Actor", link(one.actor_id, actor_path(session, job, one.actor_id)) if one.actor_id else EMPTY),
            ("Node", link(one.node_id[:_ID_CHARS], node_path(session, job, one.node_id)) if one.node_id else EMPTY),
            ("Process", str(one.pid) if one.pid else ""),
            ("Resources", _resources_in_words(one.resources)),
            ("Log", _task_logs(one, session)),
        ]
    )
    return join([known, tag("pre", cut_at_word(one.message, _MESSAGE_CHARS)) if one.message else EMPTY])


def _task_logs(one: AttemptRow, session: SessionId) -> Html:
    if not one.node_id:
        return EMPTY
    hrefs = {suffix: _task_log(one, session, suffix) for suffix in ("out", "err")}
    return join([link(suffix, href) for suffix, href in hrefs.items()], " · ")


def _task_log(one: AttemptRow, session: SessionId, suffix: str) -> str:
    """What the attempt wrote; of a method of an actor, what its actor did."""
    if one.actor_id:
        return log_of_path(session, actor=one.actor_id, suffix=suffix)
    return log_of_path(session, task=one.task_id, attempt=one.attempt_number, suffix=suffix)


def _attempts(attempts: Attempts, wanted: AttemptsRequest, session: SessionId, job: str) -> Html:
    path = job_path(session, job, "tasks")
    given = {"state": wanted.state, "name": wanted.words}
    fields = [text_field("Function", "name", given), choice("State", "state", given, _STATE_WORDS)]
    form = filter_form(path, "Attempts", fields, {name: text for name, text in given.items() if text})
    if not attempts.rows:
        return join([tag("h2", "Attempts"), form, nothing("No attempt is like that.")])
    rows = [_attempt_row(one, session, job) for one in attempts.rows]
    last = wanted.start + len(rows)
    told = f"{wanted.start + 1:,} to {last:,} of {counted(attempts.number, 'attempt')}; those that failed come first."
    shown = table("Attempts", _ATTEMPT_HEADERS, rows, hides_caption=True, numbers=("Attempt", "Took"))
    first = link_with(path, given) if wanted.start else None
    following = link_with(path, given, start=str(wanted.start + ATTEMPTS_OF_PAGE)) if last < attempts.number else None
    pages = pager(first=first, following=following, words=("First", "Next"))
    return join([tag("h2", "Attempts"), form, tag("p", quiet(told)), shown, pages])


def _attempt_row(one: AttemptRow, session: SessionId, job: str) -> tuple[str, ...]:
    node = link(one.node_id[:_ID_CHARS], node_path(session, job, one.node_id)) if one.node_id else EMPTY
    return (
        link(one.function or one.task_id, task_path(session, job, one.task_id, one.attempt_number)),
        str(one.attempt_number),
        _state(one.state),
        one.error_type,
        moment(one.started_at),
        duration(one.took),
        node,
        _task_logs(one, session),
    )


def _state(state: str) -> Html:
    return badge(state.lower().replace("_", " "), _STATES.get(state, "quiet")) if state else EMPTY


_ACTOR_HEADERS = ("Actor", "Class", "State", "Restarts", "Started", "Lived", "Node", "Log", "Ended because")


def actors_tab(actors: Actors, session: SessionId, job: str) -> Html:
    if not actors.rows:
        return nothing("This job has no actors.")
    rows = [_actor_row(one, session, job) for one in actors.rows]
    more = tag("p", quiet(f"{actors.left_out:,} more are not listed.")) if actors.left_out else EMPTY
    shown = table("Actors", _ACTOR_HEADERS, rows, name="actors", hides_caption=True, numbers=("Restarts", "Lived"))
    return join([tag("h2", "Actors"), shown, more])


def _actor_row(one: ActorRow, session: SessionId, job: str) -> tuple[str, ...]:
    logs = [
        link(suffix, log_of_path(session, actor=one.actor_id, suffix=suffix))
        for suffix in ("out", "err")
        if one.node_id
    ]
    state = badge(one.state.lower(), "bad" if one.died_unasked else "busy" if one.state == "ALIVE" else "quiet")
    name = tag("span", one.name or one.class_name or one.actor_id, id=anchor("a", one.actor_id))
    return (
        join([name, tag("br"), quiet(one.actor_id[:_ID_CHARS])]),
        one.class_name,
        state,
        str(one.restarts),
        moment(one.started_at),
        duration(one.lived),
        link(one.node_id[:_ID_CHARS], node_path(session, job, one.node_id)) if one.node_id else EMPTY,
        join(logs, " · "),
        cut_at_word(one.death, _DEATH_CHARS),
    )


_NODE_HEADERS = ("Node", "Attempts", "Failed", "Has", "Started", "Ended", "Why")


def resources_tab(curves: Curves, usage: Usage, nodes: Sequence[JobNode], session: SessionId) -> Html:
    """What the job's nodes used while it ran, and which they are."""
    parts = [curves_section(curves), usage_section(usage), tag("h2", "Nodes")]
    if not nodes:
        return join([*parts, nothing("No node is known to have run this job.")])
    rows = [_node_row(one, session) for one in nodes]
    shown = table("Nodes", _NODE_HEADERS, rows, name="nodes", hides_caption=True, numbers=("Attempts", "Failed"))
    return join([*parts, shown])


def _node_row(one: JobNode, session: SessionId) -> tuple[str, ...]:
    name = tag("span", f"{one.name or one.ip or one.node_id}", id=anchor("n", one.node_id))
    head = [" ", badge("head")] if one.is_head else []
    dashboard = link(f"{one.ip} {one.node_id[:_ID_CHARS]}".strip(), node_path(session, "", one.node_id))
    return (
        join([name, *head, tag("br"), dashboard]),
        f"{one.attempts:,}",
        f"{one.failed:,}",
        _resources_in_words(one.resources),
        moment(one.started_at),
        moment(one.ended_at),
        cut_at_word(one.death, _DEATH_CHARS),
    )


_GIB = 1 << 30


def _resources_in_words(resources: Mapping[str, float]) -> str:
    """Without the resources by which Ray itself names nodes."""
    known = [(name, value) for name, value in sorted(resources.items()) if ":" not in name]
    return ", ".join(_amount(name, value) for name, value in known)


def _amount(name: str, value: float) -> str:
    return f"{value / _GIB:.3g} GiB {name.replace('_', ' ')}" if name.endswith("memory") else f"{value:g} {name}"


_ENVIRONMENT_CHARS = 20_000


def environment_tab(overview: JobOverview) -> Html:
    job, about = overview.job, overview.facts
    metadata = ", ".join(f"{name}={value}" for name, value in sorted(job.metadata.items()))
    known = facts(
        [
            ("Entrypoint", tag("code", job.entrypoint) if job.entrypoint else EMPTY),
            ("Job id", job.job_id or "no driver started"),
            ("Submission id", job.id if job.id != job.job_id else ""),
            ("Metadata", metadata),
            ("Ray", about.ray_version),
            ("Python", about.python_version),
            ("Owner", f"{about.owner_kind} {about.owner_name}".strip()),
            ("Cluster uid", about.cluster_uid),
        ]
    )
    heading = tag("h2", "Runtime environment")
    if not overview.runtime_env:
        return join([known, heading, nothing("This job has no runtime environment of its own.")])
    text = json.dumps(overview.runtime_env, indent=2, sort_keys=True, ensure_ascii=False)
    return join([known, heading, tag("pre", text[:_ENVIRONMENT_CHARS])])


_SEEN_SHOWN = 5


def seen_before(others: Sequence[JobOfSession], fingerprint: str) -> Html:
    """Other jobs with the same root cause, the newest first, and where all of them are."""
    if not others:
        return EMPTY
    rows = [
        tag(
            "li",
            moment(one.job.started_at or one.entry.start.started_at),
            " ",
            link(f"{one.entry.id.cluster} / {one.job.name}", job_path(one.entry.id, one.job.name)),
            " ",
            status_badge(one.job.status),
        )
        for one in others[:_SEEN_SHOWN]
    ]
    left = f"and {len(others) - _SEEN_SHOWN:,} more: " if len(others) > _SEEN_SHOWN else ""
    more = tag("p", quiet(left), link("This failure in all clusters", failure_path(fingerprint)))
    heading = tag("h2", f"Seen before in {counted(len(others), 'other job')}")
    return tag("section", heading, tag("ul", *rows), more, class_="seen")
