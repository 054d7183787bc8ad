"""What the dashboard last said of the machines: CPU, memory, and each worker process' counters. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from raykeeper.history.asked import Asked

POLLED = "/nodes?view=summary"

CORE_WORKERS = "coreWorkersStats"


@dataclass(frozen=True)
class NodeStatistics:
    """The newest node summary, which the collector asks for once a minute."""

    entries: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """As they stand in Ray's answer, by node id."""
    logical_resources: Mapping[str, Any] = field(default_factory=dict)
    """One text for each node."""

    def memory(self, node_id: str | None) -> list[Any]:
        return list(self.entries.get(node_id or "", {}).get("mem") or [])

    def workers(self, node_id: str) -> list[dict[str, Any]]:
        """Counters of the node's worker processes."""
        return list(self.entries.get(node_id, {}).get("raylet", {}).get(CORE_WORKERS) or [])

    def by_worker(self) -> dict[str, dict[str, Any]]:
        """Counters of every worker process, by worker id."""
        return {
            worker["workerId"]: worker
            for node_id in self.entries
            for worker in self.workers(node_id)
            if "workerId" in worker
        }


def last_statistics(asked: Asked) -> NodeStatistics:
    body = asked.polled_body(POLLED, dict[str, Any]) or {}
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
