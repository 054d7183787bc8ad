"""What a watch shows becomes a fact of the right cluster, once."""

from __future__ import annotations

import pytest

from raykeeper.api.meta import ObjectKey
from raykeeper.history.observer.observer import ClusterSink, EventSink, PodSink
from raykeeper.history.observer.outbox import Outbox, SeenFact
from raykeeper.history.observer.rayjobs import RayJobs
from raykeeper.history.observer.recorder import HOLD_SECONDS, Recorder
from raykeeper.history.observer.roster import Roster, Sight
from raykeeper.layout.keys import ClusterId
from raykeeper.layout.kube_facts import ClusterFact, EventFact, PodFact
from support.clocks import ManualClock
from support.observer_scene import CLUSTER, cluster, event, pod

AGAIN = ClusterId("team-a", "train", "c-2")
JOB = {"kind": "RayJob", "name": "nightly", "uid": "j-1"}


class Scene:
    """The three sinks over one recorder."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.roster, self._outbox = Roster(), Outbox()
        self.lives: list[ClusterId] = []
        recorder = Recorder(self.roster, self._outbox, RayJobs(self.clock), self.clock, self.lives.append)
        self.clusters, self.pods, self.events = ClusterSink(recorder), PodSink(recorder), EventSink(recorder)

    def recorded(self) -> dict[ClusterId, list[SeenFact]]:
        """What was recorded since this was last asked."""
        self.clock.advance(60)
        return {batch.cluster: list(batch.facts) for batch in self._outbox.take_due(self.clock.steady())}


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_state_is_recorded_once_and_a_list_after_a_broken_watch_adds_nothing(scene: Scene) -> None:
    for _ in range(3):
        scene.clusters.put(cluster())
        scene.pods.put(pod())
        scene.events.put(event("p-1", count=2))
    [facts] = scene.recorded().values()
    assert [type(fact) for fact in facts] == [ClusterFact, PodFact, EventFact]
    scene.events.put(event("p-1", count=3))
    scene.pods.put(pod(phase="Failed"))
    assert [type(fact) for fact in scene.recorded()[CLUSTER]] == [EventFact, PodFact]


def test_what_is_gone_is_recorded_with_its_last_state(scene: Scene) -> None:
    scene.clusters.put(cluster())
    scene.pods.put(pod(phase="Failed", reason="Evicted"))
    scene.recorded()
    scene.clusters.remove(ObjectKey("team-a", "train"))
    scene.pods.remove(ObjectKey("team-a", "train-p-1"))
    scene.pods.remove(ObjectKey("team-a", "never seen"))
    gone, last = scene.recorded()[CLUSTER]
    assert isinstance(gone, ClusterFact)
    assert isinstance(last, PodFact)
    assert (gone.deleted, last.deleted, last.reason) == (True, True, "Evicted")
    assert scene.roster.sight(CLUSTER.uid) == Sight(is_there=False)


def test_a_cluster_made_again_under_its_name_is_another_one(scene: Scene) -> None:
    scene.clusters.put(cluster())
    scene.clusters.put(cluster(AGAIN))
    facts = scene.recorded()
    assert [(fact.uid, fact.deleted) for fact in facts[CLUSTER] if isinstance(fact, ClusterFact)] == [
        ("c-1", False),
        ("c-1", True),
    ]
    assert [fact.uid for fact in facts[AGAIN] if isinstance(fact, ClusterFact)] == ["c-2"]


def test_a_pod_belongs_to_its_owner_also_when_that_is_gone_and_else_to_the_cluster_of_its_label(scene: Scene) -> None:
    scene.clusters.put(cluster(AGAIN))
    scene.pods.put(pod("p-1", CLUSTER))
    unowned = pod("p-2", AGAIN)
    unowned.metadata.owner_references = ()
    scene.pods.put(unowned)
    stray = pod("p-3", ClusterId("team-a", "unknown", "?"))
    stray.metadata.owner_references = ()
    scene.pods.put(stray)
    facts = scene.recorded()
    assert {id_: [fact.uid for fact in some if isinstance(fact, PodFact)] for id_, some in facts.items()} == {
        AGAIN: ["p-2"],
        CLUSTER: ["p-1"],
    }


def test_events_before_their_object_and_after_its_end_find_their_cluster(scene: Scene) -> None:
    scene.events.put(event("p-1", "early"))
    scene.clusters.put(cluster())
    scene.pods.put(pod())
    scene.pods.remove(ObjectKey("team-a", "train-p-1"))
    scene.clusters.remove(ObjectKey("team-a", "train"))
    scene.events.put(event("p-1", "late"))
    scene.events.put(event("c-1", "later", kind="RayCluster"))
    facts = scene.recorded()[CLUSTER]
    assert [fact.uid for fact in facts if isinstance(fact, EventFact)] == ["early", "late", "later"]


def test_events_of_a_rayjob_are_recorded_with_each_cluster_it_made(scene: Scene) -> None:
    scene.events.put(event("j-1", "before", kind="RayJob"))
    scene.clusters.put(cluster(owner=JOB))
    second = ClusterId("team-a", "train-2", "c-9")
    scene.clusters.put(cluster(second, owner=JOB))
    scene.events.put(event("j-1", "during", kind="RayJob"))
    scene.clusters.remove(ObjectKey("team-a", "train"))
    scene.clusters.remove(ObjectKey("team-a", "train-2"))
    scene.events.put(event("j-1", "after", kind="RayJob"))
    events = {id_: [one.uid for one in facts if isinstance(one, EventFact)] for id_, facts in scene.recorded().items()}
    assert events[CLUSTER] == ["before", "during"]
    assert events[second] == ["during", "after"]


def test_events_about_other_things_are_never_recorded_and_take_bounded_room(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raykeeper.history.observer.recorder.MOST_UNPLACED_EVENTS", 100)
    scene.events.put(event("n-1", kind="Node"))
    for number in range(500):
        scene.events.put(event(f"foreign-{number}", f"e-{number}"))
    held = scene.events._recorder._unplaced
    assert (scene.recorded(), len(held), len(held._about)) == ({}, 100, 100)
    scene.clock.advance(HOLD_SECONDS + 1)
    scene.events.put(event("foreign-again", "e-again"))
    assert len(held) == 1


def test_a_cluster_is_looked_at_when_it_or_its_head_changes_not_for_workers(scene: Scene) -> None:
    scene.clusters.put(cluster())
    scene.pods.put(pod("w"))
    assert scene.lives == [CLUSTER]
    scene.pods.put(pod("h", node_type="head"))
    scene.pods.put(pod("h", node_type="head", phase="Failed"))
    assert scene.lives == [CLUSTER] * 3
    assert scene.roster.sight("c-1") == Sight(is_there=True, has_living_head=False, had_head=True)


def test_an_object_of_a_wrong_shape_does_not_stop_the_watch(scene: Scene) -> None:
    scene.clusters.put(cluster(status={"state": 7}))
    scene.pods.put(pod(containerStatuses="none"))
    assert scene.recorded() == {}
    scene.clusters.put(cluster())
    assert len(scene.recorded()[CLUSTER]) == 1


def test_a_watch_of_one_namespace_knows_only_its_own_objects(scene: Scene) -> None:
    scene.clusters.put(cluster())
    scene.clusters.put(cluster(ClusterId("team-b", "other", "c-3")))
    assert scene.clusters.keys("team-b") == [ObjectKey("team-b", "other")]
    assert len(scene.clusters.keys(None)) == 2
    assert scene.events.keys(None) == []
