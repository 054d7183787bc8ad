"""What a report rests on, with the way to each piece of it: lines of logs, tasks, actors, nodes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.http.pages.widgets import link, moment, quiet
from raykeeper.history.report.model import Address, Evidence, Excerpt, LineKind, ShownLine, Step
from raykeeper.history.text import end_of
from raykeeper.history.urls import actor_path, log_line_path, log_path, node_path, task_path
from raykeeper.layout.keys import SessionId

EVIDENCE_CHARS = 1500
_ID_CHARS = 12
_WORKER = re.compile(r"(worker-[0-9a-f]{8})[0-9a-f]{8,}-[0-9a-f]{8}(-\d+\.\w+)")


def short_name(file: str) -> str:
    """What a log is called where there is little room: the id of a worker has 56 characters."""
    return _WORKER.sub(r"\1…\2", file.rpartition("/")[2])


def excerpt_part(excerpt: Excerpt, session: SessionId, job: str) -> Html:
    """Lines that matter, each with the way to its place in its file."""
    where = excerpt.address
    line = f", line {where.line}" if where.line else ""
    href, words = best_href(where, session, job), f"{short_name(excerpt.title)}{line}"
    title = tag("a", words, href=href, title=excerpt.title) if href else quiet(words)
    shown = (_shown_line(one, where, session) for one in excerpt.lines)
    return join([tag("p", title, class_="excerpt"), tag("pre", join(shown), class_="code")])


def _shown_line(line: ShownLine, where: Address, session: SessionId) -> Html:
    number = EMPTY
    if line.number and where.file and where.node_id:
        href = log_line_path(session, where.node_id, where.file, line.number)
        number = tag("a", str(line.number), href=href, class_="number", aria_label=f"Line {line.number} of the log")
    text = tag("strong", line.text) if line.kind is LineKind.ERROR else line.text
    return tag("span", number, " " if number else "", text, "\n", class_=f"line {line.kind.value}")


def evidence_part(evidence: Iterable[Evidence], session: SessionId, job: str) -> Html:
    return join(_fact(fact, session, job) for fact in evidence)


def _fact(fact: Evidence, session: SessionId, job: str) -> Html:
    links = address_links(fact.address, session, job)
    about = [quiet(fact.source), *([quiet(", "), moment(fact.at)] if fact.at else [])]
    about += [part for one in links for part in (quiet(" · "), one)]
    return join([tag("p", *about), tag("pre", end_of(fact.text, EVIDENCE_CHARS))])


def chain_part(steps: Iterable[Step], session: SessionId, job: str) -> Html:
    """From the cause to the end of the job, each step with the way to what tells of it."""
    items = [tag("li", _step(step, session, job)) for step in steps]
    return tag("ol", *items, class_="chain", aria_label="Chain of causes") if len(items) > 1 else EMPTY


def _step(step: Step, session: SessionId, job: str) -> Html:
    href = best_href(step.address, session, job)
    return link(step.text, href) if href else join([step.text])


def address_links(address: Address, session: SessionId, job: str) -> list[Html]:
    """Every place where it can be looked at, the closest first."""
    found = []
    if href := log_href(address, session):
        line = f":{address.line}" if address.line else ""
        found.append(tag("a", f"{short_name(address.file)}{line}", href=href, title=address.file))
    if address.task_id:
        href = task_path(session, address.job or job, address.task_id, address.attempt_number)
        found.append(link(f"task {address.task_id[:_ID_CHARS]}", href))
    if address.actor_id:
        found.append(
            link(f"actor {address.actor_id[:_ID_CHARS]}", actor_path(session, address.job or job, address.actor_id))
        )
    if address.node_id:
        found.append(link(f"node {address.node_id[:_ID_CHARS]}", node_path(session, job, address.node_id)))
    return found


def best_href(address: Address, session: SessionId, job: str) -> str:
    """Where it is best looked at; empty where it is nowhere."""
    if href := log_href(address, session):
        return href
    if address.task_id:
        return task_path(session, address.job or job, address.task_id, address.attempt_number)
    if address.actor_id:
        return actor_path(session, address.job or job, address.actor_id)
    return node_path(session, job, address.node_id) if address.node_id else ""


def log_href(address: Address, session: SessionId) -> str:
    """The line of the log where it is; empty where it is in none."""
    if not (address.file and address.node_id):
        return ""
    if address.line:
        return log_line_path(session, address.node_id, address.file, address.line)
    return log_path(session, address.node_id, address.file, at=address.offset)
