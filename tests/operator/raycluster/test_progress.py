"""How far a cluster is on its way is said now and then; everything else at once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from raykeeper.api.raycluster import RayClusterStatus
from raykeeper.operator.raycluster.pod import Pod
from raykeeper.operator.raycluster.progress import HOLD_SECONDS, Progress, is_progress
from raykeeper.operator.raycluster.status import Failure, Outcome, status_of
from support.clocks import ManualClock
from support.operator_raycluster import NOW, a_cluster, a_group, a_head, a_worker

CLUSTER = a_cluster(a_group("small", 2))
WAITING = a_head(ready=False, ready_reason="Unknown", phase="Pending")
YOUNG = [a_worker(name, ready=False, phase="Pending") for name in ("a", "b")]


def status(*pods: Pod, **fields: Any) -> RayClusterStatus:
    return status_of(CLUSTER, Outcome(pods, None, now=NOW, **fields))


STARTED = status(WAITING, *YOUNG)
HALF = status(a_head(), a_worker("a"), YOUNG[1])


@pytest.mark.parametrize(
    ("known", "new"), [(STARTED, HALF), (STARTED, status(WAITING, a_worker("a"), YOUNG[1]))], ids=["head", "worker"]
)
def test_more_ready_pods_are_progress(known: RayClusterStatus, new: RayClusterStatus) -> None:
    assert is_progress(known, new)


@pytest.mark.parametrize(
    ("known", "new"),
    [
        (RayClusterStatus(), STARTED),
        (HALF, HALF),
        (HALF, status(a_head(), a_worker("a"), a_worker("b"))),
        (HALF, STARTED),
        (status(a_head(), a_worker("a"), a_worker("b")), HALF),
        (STARTED, status(a_head(ready=False, ready_reason="ImagePullBackOff"), *YOUNG)),
        (STARTED, status(a_head(), a_worker("a"), failure=Failure("FailedCreateWorkerPod", "quota"))),
    ],
    ids=["the first word", "nothing new", "ready", "pods lost", "no longer ready", "why not", "refused"],
)
def test_what_a_user_needs_to_know_is_no_progress(known: RayClusterStatus, new: RayClusterStatus) -> None:
    assert not is_progress(known, new)


def test_workers_that_a_ready_cluster_gets_are_progress_too() -> None:
    ready = msgspec.structs.replace(CLUSTER, status=status(a_head(), a_worker("a"), a_worker("b")))
    counts = [status_of(ready, Outcome([a_head(), *workers], None, now=NOW)) for workers in (YOUNG, [a_worker("a")])]
    assert [one.state for one in counts] == ["ready", "ready"]
    assert is_progress(*counts)


def test_progress_waits_for_a_moment_and_not_longer() -> None:
    clock = ManualClock()
    progress, cluster = Progress(clock), msgspec.structs.replace(CLUSTER, status=STARTED)
    assert progress.seconds_to_wait(cluster, HALF) == HOLD_SECONDS
    clock.advance(HOLD_SECONDS / 2)
    assert progress.seconds_to_wait(cluster, HALF) == pytest.approx(HOLD_SECONDS / 2)
    clock.advance(HOLD_SECONDS / 2)
    assert progress.seconds_to_wait(cluster, HALF) == 0.0
    assert progress.seconds_to_wait(cluster, HALF) == HOLD_SECONDS, "the next one waits anew"
    assert progress.seconds_to_wait(cluster, status(a_head(), a_worker("a"), a_worker("b"))) == 0.0
