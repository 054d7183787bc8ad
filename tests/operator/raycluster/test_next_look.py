"""A cluster is looked at again when time alone could change what is done about it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec import structs

from raykeeper.kube.controllers.requeue import Requeue
from raykeeper.operator.raycluster.next_look import gang_look, next_look
from raykeeper.operator.raycluster.pod import Pod
from raykeeper.operator.schedulers.interface import Wait
from support.operator_raycluster import NOW, a_cluster, a_head, a_worker


def seconds(*pods: Pod, waits: tuple[float | None, ...] = (), chance: float = 0.5) -> float | None:
    return next_look(pods, waits, NOW, 300, chance).delay(NOW)


@pytest.mark.parametrize(("chance", "after"), [(0, 270), (0.5, 300), (1, 330)])
def test_the_usual_while_is_spread_by_a_tenth(chance: float, after: float) -> None:
    assert seconds(a_head(), chance=chance) == pytest.approx(after)


def test_an_operator_may_do_without_the_usual_look_but_not_without_deadlines() -> None:
    assert next_look([a_head()], [None], NOW, 0, 0.5) == Requeue.never()
    assert next_look([a_head(ends=NOW)], [], NOW, 0, 0.5).delay(NOW) == 61


def test_pods_that_go_or_ended_and_writes_in_flight_bring_it_back_in_time() -> None:
    assert seconds(a_worker("a", ends=NOW + timedelta(seconds=30))) == 91
    assert seconds(a_worker("a", ends=NOW - timedelta(seconds=90))) == 211
    assert seconds(a_worker("a", ended=True, age=2)) == 4
    assert seconds(a_head(), waits=(None, 20)) == 21


def test_a_gang_of_a_rayjob_is_looked_at_while_it_waits_since_nobody_tells_its_cluster() -> None:
    cluster, waits = a_cluster(), Wait("Queued", "PodGroup ray-train-pg is Pending")
    marks = {"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "train"}
    of_job = structs.replace(cluster, metadata=structs.replace(cluster.metadata, labels=marks))
    assert [gang_look(of_job, waits), gang_look(of_job, None), gang_look(cluster, waits)] == [30, None, None]
