"""What the dashboard last said of the machines: CPU, memory, and each worker process' counters. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from raykeeper.history.query.context import SessionContext

POLLED = "/nodes?view=summary"

CORE_WORKERS = "coreWorkersStats"
_REASONS = {
    "EXPECTED_TERMINATION": "Expected termination",
    "UNEXPECTED_TERMINATION": "Unexpected termination",
    "AUTOSCALER_DRAIN_PREEMPTED": "Terminated due to preemption",
    "AUTOSCALER_DRAIN_IDLE": "Terminated due to idle (no Ray activity)",
}


@dataclass(frozen=True)
class NodeStatistics:
    """The newest node summary, which the collector asks for once a minute."""

    entries: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """As they stand in Ray's answer, by node id."""
    logical_resources: Mapping[str, Any] = field(default_factory=dict)
    """One text for each node."""

    def workers(self, node_id: str) -> list[dict[str, Any]]:
        """Counters of the node's worker processes."""
        return list(self.entries.get(node_id, {}).get("raylet", {}).get(CORE_WORKERS) or [])


class _Raylet(msgspec.Struct):
    node_id: str = msgspec.field(default="", name="nodeId")
    core_workers: list[dict[str, Any]] | None = msgspec.field(default=None, name=CORE_WORKERS)


class _Entry(msgspec.Struct):
    raylet: _Raylet
    mem: list[Any] | None = None


class _Data(msgspec.Struct):
    summary: list[_Entry]


class _Answer(msgspec.Struct):
    data: _Data


@dataclass(frozen=True)
class WorkerCounters:
    """The part of the same answer that actor pages need; the rest is not even decoded."""

    by_worker: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    memory_of_node: Mapping[str, list[Any]] = field(default_factory=dict)


async def last_counters(context: SessionContext) -> WorkerCounters:
    answer = await context.polled_body(POLLED, _Answer)
    if answer is None:
        return WorkerCounters()
    entries = answer.data.summary
    workers = [worker for entry in entries for worker in entry.raylet.core_workers or () if "workerId" in worker]
    return WorkerCounters(
        {worker["workerId"]: worker for worker in workers}, {entry.raylet.node_id: entry.mem or [] for entry in entries}
    )


async def last_statistics(context: SessionContext) -> NodeStatistics:
    body = await context.polled_body(POLLED, dict[str, Any]) or {}
    return parse_statistics(body)


def parse_statistics(body: Mapping[str, Any]) -> NodeStatistics:
    """Entries that name no node are left out."""
    data = body.get("data")
    if not isinstance(data, dict):
        return NodeStatistics()
    entries = [entry for entry in data.get("summary") or [] if isinstance(entry, dict)]
    named = {entry["raylet"]["nodeId"]: entry for entry in entries if _names_node(entry)}
    return NodeStatistics(named, data.get("nodeLogicalResources") or {})


def _names_node(entry: Mapping[str, Any]) -> bool:
    raylet = entry.get("raylet")
    return isinstance(raylet, dict) and isinstance(raylet.get("nodeId"), str)


def state_message(reason: str | None, message: str | None) -> str | None:
    """Why a node died, in the words of Ray's dashboard."""
    known = _REASONS.get(reason or "")
    if message:
        return f"{known}: {message}" if known else message
    return known
