"""One batch scheduler per operator, and none where none is asked for."""

from __future__ import annotations

import pytest

from rayclusters.manifests import a_cluster
from raykeeper.errors import Misconfigured
from raykeeper.operator.schedulers.choice import SCHEDULERS, chosen_name, scheduler_named
from raykeeper.operator.schedulers.gang import Gang
from raykeeper.operator.shared.owner import Owner


def chosen(name: str = "", *, is_legacy: bool = False) -> str:
    return chosen_name("--batch-scheduler", name, "--enable-batch-scheduler", is_legacy=is_legacy)


def test_without_a_scheduler_pods_and_children_stay_as_they_are() -> None:
    cluster, pod = a_cluster().build(), {"metadata": {"name": "a"}}
    scheduler, gang = scheduler_named(chosen()), Gang(Owner.of(cluster), cluster.spec)
    assert scheduler.dress(gang, pod, "headgroup") == {"metadata": {"name": "a"}}
    assert list(scheduler.objects(gang)) == []
    assert list(scheduler.at_rest(gang)) == []


def test_a_scheduler_that_nobody_knows_is_refused_with_those_there_are() -> None:
    with pytest.raises(Misconfigured, match="there are volcano"):
        chosen("slurm")


def test_the_old_flag_is_another_word_for_volcano_and_not_to_be_used_beside_the_new_one() -> None:
    with pytest.raises(Misconfigured, match="--enable-batch-scheduler"):
        chosen("yunikorn", is_legacy=True)
    assert chosen(is_legacy=True) == "volcano"


@pytest.mark.parametrize("name", SCHEDULERS)
def test_each_scheduler_knows_its_name(name: str) -> None:
    assert scheduler_named(name).name == name
