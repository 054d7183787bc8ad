"""The table of states: which signs of life make a session running, ended, crashed or final."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from raykeeper.history.store.session_state import NodeLife, SessionState, State, lost_heads, session_state
from raykeeper.layout.records import CLUSTER_DELETED, HEAD_LOST, RAYLET_KILLED, ClosedRecord, EndRecord

NOW = datetime(2026, 11, 15, 20, 0, tzinfo=UTC)
NodeLives = list[NodeLife]


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def head(
    seconds_ago: float, *, ended: str = "", ended_ago: float = 0, interval: float = 30.0, node_id: str = "a"
) -> NodeLife:
    end = EndRecord(node_id=node_id, role="head", ended_at=ago(ended_ago), reason=ended, is_complete=True)
    return NodeLife(
        ago(seconds_ago),
        node_id,
        is_head=True,
        interval_seconds=interval,
        has_ended=bool(ended),
        end=end if ended else None,
    )


def without_raylet(seconds_ago: float, gone_ago: float, *, killed: bool) -> NodeLife:
    """A head whose collector lives on."""
    return NodeLife(ago(seconds_ago), "a", is_head=True, raylet_gone_at=ago(gone_ago), was_raylet_killed=killed)


def worker(seconds_ago: float, *, ended: bool = False) -> NodeLife:
    return NodeLife(ago(seconds_ago), "w", has_ended=ended)


def over(state: State, ended_ago: float, reason: str, *, is_final: bool = False) -> SessionState:
    return SessionState(state, is_final, ago(ended_ago), reason)


RUNNING = SessionState(State.RUNNING)
DOUBTED = SessionState(State.RUNNING, is_doubtful=True)
ENDED, CRASHED = State.ENDED, State.CRASHED


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([head(0)], RUNNING),
        ([head(59)], RUNNING),
        ([head(60)], DOUBTED),
        ([head(89)], DOUBTED),
        ([head(90)], over(CRASHED, 90, "silent")),
        ([head(299)], over(CRASHED, 299, "silent")),
        ([head(300)], over(CRASHED, 300, "silent", is_final=True)),
        # a short interval doubts sooner, and does not make it silent sooner; a long one does both later
        ([head(19, interval=10)], RUNNING),
        ([head(20, interval=10)], DOUBTED),
        ([head(89, interval=10)], DOUBTED),
        ([head(90, interval=10)], over(CRASHED, 90, "silent")),
        ([head(500, interval=300)], RUNNING),
        # a graceful end, however young the heartbeat
        ([head(1, ended="terminated")], over(ENDED, 0, "terminated", is_final=True)),
        ([head(4000, ended="terminated", ended_ago=9)], over(ENDED, 9, "terminated", is_final=True)),
        # its raylet is gone, whatever its collector does
        ([without_raylet(5, 6, killed=True)], over(CRASHED, 6, RAYLET_KILLED)),
        ([without_raylet(500, 501, killed=True)], over(CRASHED, 501, RAYLET_KILLED, is_final=True)),
        ([without_raylet(5, 6, killed=False)], over(ENDED, 6, "raylet ended")),
        ([head(5, ended=RAYLET_KILLED, ended_ago=600)], over(CRASHED, 600, RAYLET_KILLED, is_final=True)),
        # workers that still send keep it from being final, and never make it running
        ([head(60, ended="terminated"), worker(10)], over(ENDED, 0, "terminated")),
        ([head(200), worker(10)], over(CRASHED, 200, "silent")),
        ([head(400), worker(301), worker(1, ended=True)], over(CRASHED, 400, "silent", is_final=True)),
        ([head(0), worker(9000)], RUNNING),
        # several heads under GCS fault tolerance: the one that beat last decides
        ([head(900, ended="replaced"), head(5, node_id="b")], RUNNING),
        ([head(900, ended="replaced"), head(400, node_id="b")], over(CRASHED, 400, "silent", is_final=True)),
        ([head(900), head(9, node_id="b", ended="terminated")], over(ENDED, 0, "terminated", is_final=True)),
        # nobody ever said anything
        ([], SessionState(State.UNKNOWN)),
        ([worker(10)], SessionState(State.UNKNOWN)),
        ([worker(301)], SessionState(State.UNKNOWN, is_final=True)),
        # the store's clock was set back
        ([head(-5)], RUNNING),
    ],
)
def test_signs_of_life_make_a_state(nodes: NodeLives, expected: SessionState) -> None:
    assert session_state(nodes, None, NOW) == expected


@pytest.mark.parametrize(
    ("nodes", "reason", "expected"),
    [
        ([head(20)], CLUSTER_DELETED, over(ENDED, 10, CLUSTER_DELETED)),
        ([head(4000)], CLUSTER_DELETED, over(ENDED, 10, CLUSTER_DELETED, is_final=True)),
        ([], CLUSTER_DELETED, over(ENDED, 10, CLUSTER_DELETED, is_final=True)),
        # known to be lost before its silence shows it
        ([head(20)], HEAD_LOST, over(CRASHED, 10, HEAD_LOST)),
        ([], HEAD_LOST, over(CRASHED, 10, HEAD_LOST, is_final=True)),
        # it said goodbye after all
        ([head(20, ended="terminated", ended_ago=15)], HEAD_LOST, over(ENDED, 15, "terminated", is_final=True)),
        # a crashed cluster that is deleted later crashed, when it crashed
        ([without_raylet(900, 901, killed=True)], CLUSTER_DELETED, over(CRASHED, 901, RAYLET_KILLED, is_final=True)),
        ([without_raylet(9, 20, killed=True)], HEAD_LOST, over(CRASHED, 20, RAYLET_KILLED)),
    ],
)
def test_the_observers_word_counts_where_the_head_said_nothing(
    nodes: NodeLives, reason: str, expected: SessionState
) -> None:
    closed = ClosedRecord(closed_at=ago(10), reason=reason, cluster_uid="u")
    assert session_state(nodes, closed, NOW) == expected


def test_a_lost_head_lived_until_the_last_of_its_heartbeat_and_its_events() -> None:
    for sealed, expected in ((380, 380), (420, 400)):
        last_events = {"a": ago(sealed), "w": ago(1)}
        assert session_state([head(400), worker(400)], None, NOW, last_events).ended_at == ago(expected)


def test_heads_that_crashed_and_were_followed_by_another_are_known() -> None:
    stopped = head(900, ended="terminated", ended_ago=900)
    killed = head(700, ended=RAYLET_KILLED, ended_ago=720)
    vanished = head(500)
    last = head(300, ended=RAYLET_KILLED, ended_ago=310)
    assert lost_heads([vanished, last, worker(400), stopped, killed]) == (ago(720), ago(500))
    assert lost_heads([last]) == lost_heads([]) == ()
