"""Which node a log file belongs to, when several lived in one session directory. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from raykeeper.collector.incarnations import NodeIncarnation
from raykeeper.collector.logs.kinds import start_index


def node_of_file(path: str, nodes: Sequence[NodeIncarnation], *, last_written_ns: int | None) -> str | None:
    """The node that wrote the file; None while that may still be learned.

    `nodes` are oldest first. `last_written_ns` is given for a file that was there before the collector: it belongs to
    the node that lived when it was last written. A file that appears under our eyes is the newest node's.
    """
    if not nodes:
        return None
    index = start_index(path)
    if index is not None:
        by_index = {node.log_index: node.node_id for node in nodes}
        if index in by_index:
            return by_index[index]
        if index > max(node.log_index or 0 for node in nodes):
            return None  # Ray has just started anew and its node id is not written yet
    if last_written_ns is None:
        return nodes[-1].node_id
    alive = [node.node_id for node in nodes if node.appeared_ns <= last_written_ns]
    return alive[-1] if alive else nodes[0].node_id
