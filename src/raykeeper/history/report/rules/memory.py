"""Workers that Ray's memory monitor killed: it says so in the errors of tasks, and of jobs whose supervisor it took."""

from __future__ import annotations

import re
from dataclasses import replace

from raykeeper.history.report.failures import FailedAttempt, FailureSet
from raykeeper.history.report.input import Explanation, ReportInput
from raykeeper.history.report.model import (
    Confidence,
    Evidence,
    Excerpt,
    JobOutcome,
    LineKind,
    ShownLine,
    Who,
    WhoKind,
)
from raykeeper.history.report.rules.infrastructure import OF_WORKER_LOSS, earlier, functions_of
from raykeeper.history.text import shortened
from raykeeper.times import from_ns, to_ns

_MEMORY_EXIT = "NODE_OUT_OF_MEMORY"
_LOW = "low on memory"
_TELLING = (_LOW, "Memory on the node", "Ray killed this worker", "OOM kill reason:", "Selected to kill:")
_TELLING_LIMIT = 8  # a node with many workers has a line for each
_NODE = re.compile(r"\(IP: ([^,\s]+), ID: (\w+)\)")
_INTERNAL = "_ray_internal"
_USED = re.compile(r"was (?P<used>[\d.]+ ?[KMGT]?i?B)(?: used)? / (?P<total>[\d.]+ ?[KMGT]?i?B)")
_LIMIT = re.compile(r"threshold of (?:\d+B \((?P<percent>[\d.]+%)|(?P<share>0\.\d+|1(?:\.0+)?))")
_KILLED = re.compile(r"Selected to kill: .*?task name=([^,\s]+)")


def out_of_memory(failed: FailureSet, _: ReportInput) -> Explanation | None:
    """Ray's memory monitor killed the worker and says so, in the task's error or in the worker's exit."""
    first = failed.first
    exits = {*failed.worker_exits, *_words_of_end(first)}
    was_killed = failed.error_type in OF_WORKER_LOSS and _MEMORY_EXIT in exits
    if failed.error_type != "OUT_OF_MEMORY" and not was_killed:
        return None
    evidence = [Evidence("task", memory_words(first.message), from_ns(first.end_ns), first.address)]
    if first.exit_detail and first.exit_detail not in first.message:
        said = f"{first.exit_type}: {memory_words(first.exit_detail)}"
        evidence.append(Evidence("worker", said, from_ns(first.worker_end_ns), first.address))
    said = "\n".join(filter(None, (first.message, first.exit_detail, str(first.actor_end.get("errorMessage", "")))))
    at_ns = earlier(first.worker_end_ns, failed.first_ns)
    told = _told(functions_of(failed), first.node_ip or first.node_id, said, tuple(evidence), at_ns)
    return replace(told, subject=first.node_id or "", who=first.who)


def job_out_of_memory(job: JobOutcome, report_input: ReportInput) -> Explanation | None:
    """Ray killed the supervisor of the job, mostly beside the task that took the memory."""
    said = job.message or ""
    if job.status != "FAILED" or _LOW not in said:
        return None
    evidence = (Evidence("job", memory_words(said), job.ended_at),)
    known = next((one for one in report_input.sets if out_of_memory(one, report_input)), None)
    if known is not None:
        return Explanation(known.title, Confidence.CONFIRMED, evidence, known.first_ns, because_of=known.id)
    node, killed = _NODE.search(said), dict.fromkeys(_KILLED.findall(said))
    names = ", ".join(name for name in killed if not name.startswith(_INTERNAL))
    told = _told(names, node[1] if node else None, said, evidence, to_ns(job.ended_at))
    return replace(told, subject=node[2] if node else "", who=Who(WhoKind.TASK, names) if names else None)


def _told(killed: str, where: str | None, said: str, evidence: tuple[Evidence, ...], at_ns: int | None) -> Explanation:
    """With how much memory there was, and which share of it may be used."""
    title = f"out of memory: Ray killed {killed or 'workers'} on {where or 'a node'} to free memory{numbers(said)}"
    lines = [ShownLine(shortened(line), LineKind.LOG) for line in memory_words(said).splitlines()]
    return Explanation(
        title,
        Confidence.CONFIRMED,
        evidence,
        at_ns,
        what=f"{killed or 'workers'} on {where or 'a node'}",
        basis="Ray's memory monitor says so",
        excerpts=(Excerpt("what Ray says about the memory of the node", tuple(lines)),),
    )


def numbers(said: str) -> str:
    """` (4.35GB of 23.54GB used, limit 18.0%)`; empty where Ray does not say."""
    used, limit = _USED.search(said), _LIMIT.search(said)
    if not used:
        return ""
    share = limit["percent"] or f"{float(limit['share']):.0%}" if limit else ""
    return f" ({used['used']} of {used['total']} used{f', limit {share}' if share else ''})"


def memory_words(message: str) -> str:
    """Of a page about memory: how much there was, and what was killed for it. What says nothing of that stays."""
    telling = [line for line in message.splitlines() if any(words in line for words in _TELLING)]
    return "\n".join(telling[:_TELLING_LIMIT]) or message


def _words_of_end(first: FailedAttempt) -> list[str]:
    """Ray names the exit type of an actor's worker within its message."""
    return str(first.actor_end.get("errorMessage", "")).split()
