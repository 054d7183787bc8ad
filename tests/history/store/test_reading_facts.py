"""What was recorded of a cluster comes back as one account, bounded, with what is missing said."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykeeper.history.store.kube_facts import (
    KubeFacts,
    KubeFactsReader,
    ReadingLimits,
    clusters_with_facts,
    merge_facts,
    newest_pods,
    read_facts,
)
from raykeeper.layout.keys import ClusterId, KubeFactsKey
from raykeeper.layout.kube_facts import (
    ClusterFact,
    DecodedFacts,
    EventFact,
    KubeFact,
    LossFact,
    PodFact,
    encode_facts,
)
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from raykeeper.storage.store import ObjectStore

AT = datetime(2026, 11, 15, 19, 12, 35, tzinfo=UTC)
UID = "3f0c"


def pod(phase: str, minute: int, uid: str = "p1") -> PodFact:
    return PodFact(at=AT + timedelta(minutes=minute), uid=uid, name=f"train-{uid}", phase=phase)


def event(count: int, minute: int, uid: str = "e1") -> EventFact:
    return EventFact(at=AT + timedelta(minutes=minute), uid=uid, count=count, reason="BackOff")


def cluster(state: str, minute: int, *, deleted: bool = False) -> ClusterFact:
    return ClusterFact(at=AT + timedelta(minutes=minute), uid=UID, name="train", state=state, deleted=deleted)


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(parse_store_url(f"file://{tmp_path}/store", {}))


async def put_facts(store: ObjectStore, number: int, *facts: KubeFact, name: str = "train", uid: str = UID) -> None:
    key = KubeFactsKey("team-a", name, uid, 1794770033063000000 + number).key
    assert await store.create(key, encode_facts(facts))


def merged(*segments: tuple[KubeFact, ...]) -> KubeFacts:
    return merge_facts(DecodedFacts(facts) for facts in segments)


def test_a_pods_states_are_in_order_and_a_state_seen_again_is_no_change() -> None:
    facts = merged((pod("Running", 5), pod("Running", 9)), (pod("Pending", 1), pod("Failed", 12)), (pod("Failed", 20),))
    assert [(one.phase, one.at) for one in facts.pods] == [
        ("Pending", AT + timedelta(minutes=1)),
        ("Running", AT + timedelta(minutes=5)),
        ("Failed", AT + timedelta(minutes=12)),
    ]


def test_an_event_that_happened_again_is_there_once_with_its_highest_count() -> None:
    facts = merged((event(1, 1), event(7, 30)), (event(3, 10), event(1, 2, uid="e2")))
    assert [(one.uid, one.count) for one in facts.events] == [("e2", 1), ("e1", 7)]


def test_the_cluster_is_as_it_was_last_seen() -> None:
    facts = merged((cluster("ready", 9, deleted=True),), (cluster("", 1), cluster("ready", 3)))
    assert facts.cluster == cluster("ready", 9, deleted=True)


def test_losses_are_summed_and_the_account_says_it_is_not_complete() -> None:
    loss = LossFact(at=AT, pods=2, events=5)
    facts = merged((pod("Running", 1), loss), (loss, LossFact(at=AT + timedelta(minutes=1), events=1)))
    assert (facts.lost_pods, facts.lost_events, facts.is_complete) == (2, 6, False)
    assert merged((pod("Running", 1),)).is_complete


def test_each_pod_can_be_had_as_it_was_last_seen() -> None:
    states = (pod("Pending", 1), pod("Failed", 9), pod("Pending", 2, uid="p2"))
    assert newest_pods(states) == (pod("Failed", 9), pod("Pending", 2, uid="p2"))


FACTS = st.one_of(
    st.builds(pod, st.sampled_from(["Pending", "Running"]), st.integers(0, 50), st.sampled_from(["p1", "p2"])),
    st.builds(event, st.integers(1, 9), st.integers(0, 50), st.sampled_from(["e1", "e2"])),
    st.builds(cluster, st.just("ready"), st.integers(0, 50)),
)


@given(facts=st.lists(FACTS, max_size=12, unique_by=lambda fact: (fact.uid, fact.at)), cut=st.integers(0, 12))
def test_neither_the_order_of_segments_nor_repeats_change_the_account(facts: list[KubeFact], cut: int) -> None:
    first, second = tuple(facts[:cut]), tuple(facts[cut:])
    assert merged(first, second) == merged(second, first) == merged(first, second, first)


async def test_facts_of_a_cluster_without_any_session_are_found(store: ObjectStore) -> None:
    await put_facts(store, 1, cluster("", 1), pod("Pending", 1))
    await put_facts(store, 2, pod("Failed", 2), event(1, 2))
    facts = await read_facts(store, "team-a", "train", UID)
    assert [one.phase for one in facts.pods] == ["Pending", "Failed"]
    assert facts.events == (event(1, 2),)
    assert facts.cluster == cluster("", 1)
    assert (await read_facts(store, "team-a", "train", "another")).is_empty


async def test_of_too_many_facts_the_newest_are_read_and_the_rest_is_counted(store: ObjectStore) -> None:
    for number in range(40):
        await put_facts(store, number, event(1, number, uid=f"e{number}"))
    facts = await KubeFactsReader(store, ReadingLimits(facts=10)).read("team-a", "train", UID)
    assert [one.uid for one in facts.events] == [f"e{number}" for number in range(24, 40)]
    assert (facts.unread_segments, facts.is_complete) == (24, False)
    fewer = await KubeFactsReader(store, ReadingLimits(segments=3)).read("team-a", "train", UID)
    assert (len(fewer.events), fewer.unread_segments) == (3, 37)


async def test_a_damaged_segment_is_counted_and_the_others_are_read(store: ObjectStore) -> None:
    await put_facts(store, 1, event(1, 1))
    await store.create(KubeFactsKey("team-a", "train", UID, 1794770033063000099).key, b"damaged")
    await store.create(f"{KubeFactsKey.prefix('team-a', 'train', UID)}note.txt", b"of somebody else")
    facts = await read_facts(store, "team-a", "train", UID)
    assert (facts.events, facts.unreadable, facts.is_complete) == ((event(1, 1),), 1, False)


async def test_a_segment_is_fetched_once_and_new_ones_are_seen_at_once(store: ObjectStore) -> None:
    reader = KubeFactsReader(store)
    await put_facts(store, 1, event(1, 1))
    first = await reader.read("team-a", "train", UID)
    await store.put(KubeFactsKey("team-a", "train", UID, 1794770033063000001).key, b"never looked at again")
    await put_facts(store, 2, event(2, 2))
    second = await reader.read("team-a", "train", UID)
    assert (first.events, second.events, second.unreadable) == ((event(1, 1),), (event(2, 2),), 0)


async def test_memory_for_segments_is_bounded(store: ObjectStore) -> None:
    reader = KubeFactsReader(store, ReadingLimits(remembered_facts=2))
    for number in range(5):
        await put_facts(store, number, event(1, number, uid=f"e{number}"))
    assert len((await reader.read("team-a", "train", UID)).events) == 5
    assert len((await reader.read("team-a", "train", UID)).events) == 5
    assert len(reader._segments) == 2


async def test_clusters_with_facts_are_listed_whether_or_not_they_have_sessions(store: ObjectStore) -> None:
    await put_facts(store, 1, cluster("", 1))
    await put_facts(store, 1, cluster("", 1), uid="4a11")
    await put_facts(store, 1, cluster("", 1), name="serve", uid="77")
    await store.put("v1/data/team-b/only/session_1/session.json", msgspec.json.encode({}))
    listed = await clusters_with_facts(store)
    expected = [("serve", "77"), ("train", UID), ("train", "4a11")]
    assert listed.found == tuple(ClusterId("team-a", name, uid) for name, uid in expected)
    assert listed.is_complete
    assert (await clusters_with_facts(store, "team-b")).found == ()
    some = await clusters_with_facts(store, "team-a", limit=2)
    assert (len(some.found), some.is_complete) == (2, False)
