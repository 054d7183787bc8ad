"""A pass that comes before the watch knows of the pods that the last one made and deleted."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from raykeeper.operator.raycluster.recent import RecentPods
from support.operator_raycluster import NOW, a_cluster, a_head, a_worker


class Shown:
    """Groups whose writes the cache shows."""

    def __init__(self) -> None:
        self.groups: set[str] = set()

    def __call__(self, _: object, group: str) -> bool:
        return group in self.groups


@pytest.fixture
def shown() -> Shown:
    return Shown()


def test_a_pod_just_made_counts_until_the_cache_shows_what_was_done_to_its_group(shown: Shown) -> None:
    recent, cluster, made = RecentPods(shown), a_cluster(), a_worker("a")
    recent.remember(cluster, [made])
    assert recent.overlay(cluster, [a_head()]) == [a_head(), made]
    cached = replace(made, phase="Failed")
    assert recent.overlay(cluster, [cached]) == [cached], "what the cache says of it is newer"
    shown.groups.add("small")
    assert recent.overlay(cluster, []) == []


def test_a_pod_just_deleted_is_going_although_the_cache_shows_it_alive(shown: Shown) -> None:
    recent, cluster, alive = RecentPods(shown), a_cluster(), a_worker("a")
    going = replace(alive, ends=NOW)
    recent.remember(cluster, [going])
    assert recent.overlay(cluster, [alive]) == [going]
    assert recent.overlay(cluster, []) == [], "gone already"


def test_a_pod_that_somebody_else_deleted_is_no_ghost_while_others_are_waited_for(shown: Shown) -> None:
    recent, cluster, made = RecentPods(shown), a_cluster(), a_worker("a")
    recent.remember(cluster, [made, a_worker("b")])
    recent.shown(cluster.key, made.uid, is_going=False)
    assert recent.overlay(cluster, []) == [a_worker("b")], "the cache had it, and has it no more"


def test_a_late_word_of_a_pod_that_lived_does_not_bring_it_back(shown: Shown) -> None:
    recent, cluster, alive = RecentPods(shown), a_cluster(), a_worker("a")
    recent.remember(cluster, [replace(alive, ends=NOW)])
    recent.shown(cluster.key, alive.uid, is_going=False)
    assert recent.overlay(cluster, [alive]) == [replace(alive, ends=NOW)]
    recent.shown(cluster.key, alive.uid, is_going=True)
    assert recent.overlay(cluster, [alive]) == [alive]


def test_pods_of_several_passes_are_remembered_and_each_for_its_own_cluster(shown: Shown) -> None:
    recent, cluster = RecentPods(shown), a_cluster()
    recent.remember(cluster, [a_worker("a")])
    recent.remember(cluster, [a_worker("b")])
    assert recent.overlay(cluster, []) == [a_worker("a"), a_worker("b")]
    namesake = msgspec.structs.replace(cluster, metadata=msgspec.structs.replace(cluster.metadata, uid="another"))
    assert recent.overlay(namesake, []) == []
