"""Which nodes have no statistics in a summary yet, because they joined after the head last gathered them. Pure."""

from __future__ import annotations

import msgspec

from raykeeper.collector.poll.answers import UnreadableAnswer, read_answer


class _Raylet(msgspec.Struct):
    state: str = ""


class _Node(msgspec.Struct):
    hostname: str = ""
    raylet: _Raylet = msgspec.field(default_factory=_Raylet)


class _Data(msgspec.Struct):
    summary: list[_Node]


class _Summary(msgspec.Struct):
    data: _Data


def has_unmeasured_nodes(body: bytes) -> bool:
    """Whether a node lives of which the answer to `/nodes?view=summary` says nothing more than that."""
    try:
        nodes = read_answer(body, _Summary).data.summary
    except UnreadableAnswer:
        return False
    return any(node.raylet.state == "ALIVE" and not node.hostname for node in nodes)
