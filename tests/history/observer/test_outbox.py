"""Facts on their way: gathered, bounded in objects and in memory, given up in order and counted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from raykeeper.history.observer.outbox import Batch, Losses, Outbox, OutboxLimits, SeenFact, coalesce
from raykeeper.layout.keys import ClusterId
from raykeeper.layout.kube_facts import EventFact, LossFact, PodFact
from support.observer_scene import CLUSTER

AT = datetime(2026, 11, 15, 19, 12, 35, tzinfo=UTC)
OTHER = ClusterId("team-a", "other", "c-2")


def pod(second: int, uid: str = "p-1") -> PodFact:
    return PodFact(at=AT + timedelta(seconds=second), uid=uid, name=uid)


def event(count: int, uid: str = "e-1") -> EventFact:
    return EventFact(at=AT, uid=uid, count=count)


def taken(outbox: Outbox, steady: float) -> list[tuple[str, int]]:
    return [(batch.cluster.cluster, len(batch.facts)) for batch in outbox.take_due(steady)]


def test_facts_wait_a_few_seconds_for_others_of_their_cluster() -> None:
    outbox = Outbox(OutboxLimits(settle_seconds=3))
    outbox.add(CLUSTER, [pod(0)], steady=100)
    outbox.add(CLUSTER, [pod(1)], steady=101)
    outbox.add(OTHER, [pod(2)], steady=102)
    assert (outbox.seconds_until_due(100), taken(outbox, 102.9)) == (3.0, [])
    assert taken(outbox, 103) == [("train", 2)]
    assert (outbox.seconds_until_due(103), taken(outbox, 105), outbox.waiting) == (2.0, [("other", 1)], 0)
    assert outbox.seconds_until_due(105) is None


def test_a_full_segment_does_not_wait_and_what_is_more_goes_into_the_next() -> None:
    outbox = Outbox(OutboxLimits(segment_facts=3))
    outbox.add(CLUSTER, [pod(second) for second in range(5)], steady=100)
    assert taken(outbox, 100) == [("train", 3)]
    assert taken(outbox, 103) == [("train", 2)]


def test_nothing_waits_for_others_while_much_waits_in_all() -> None:
    outbox = Outbox(OutboxLimits(settle_seconds=3600, waiting_facts=10))
    outbox.add(CLUSTER, [pod(0)], steady=100)
    outbox.add(OTHER, [pod(second) for second in range(4)], steady=100)
    assert taken(outbox, 100) == []
    outbox.add(OTHER, [pod(9)], steady=100)
    assert taken(outbox, 100) == [("train", 1), ("other", 5)]


def test_a_pod_that_flaps_for_an_hour_costs_a_bounded_number_of_objects_and_loses_nothing() -> None:
    outbox = Outbox(OutboxLimits(settle_seconds=3, burst=5, per_hour=60))
    facts, objects = 0, 0
    for second in range(3600):
        outbox.add(CLUSTER, [pod(second)], steady=second)
        for batch in outbox.take_due(second):
            facts, objects = facts + len(batch.facts), objects + 1
    assert 60 <= objects <= 65
    assert (facts + outbox.waiting, outbox.lost) == (3600, Losses())


def test_what_could_not_be_written_comes_first_and_costs_no_allowance() -> None:
    outbox = Outbox(OutboxLimits(burst=1, per_hour=1))
    outbox.add(CLUSTER, [pod(0)], steady=100)
    for _ in range(5):
        [batch] = outbox.take_due(200)
        outbox.give_back(batch)
    outbox.add(CLUSTER, [pod(1)], steady=200)
    [batch] = outbox.take_due(200)
    assert batch.facts == (pod(0), pod(1))
    assert (batch.since, outbox.waiting) == (100, 0)


def test_when_too_much_waits_replaced_states_are_given_up_first_and_the_loss_is_written() -> None:
    outbox = Outbox(OutboxLimits(waiting_facts=10, segment_facts=100))
    outbox.add(OTHER, [pod(0, "p-9")], steady=0)
    outbox.add(CLUSTER, [pod(second, f"p-{second % 2}") for second in range(8)], steady=0)
    outbox.add(CLUSTER, [event(1), event(2)], steady=0)
    assert outbox.waiting <= 10
    batches = {batch.cluster: batch for batch in outbox.take_due(10)}
    assert batches[OTHER].facts == (pod(0, "p-9"),)
    assert batches[CLUSTER].facts == (pod(6, "p-0"), pod(7, "p-1"), event(2))
    assert batches[CLUSTER].lines(AT)[0] == LossFact(at=AT, pods=6)
    assert outbox.lost == Losses(pods=6)
    assert batches[OTHER].lines(AT) == batches[OTHER].facts


def test_when_nothing_is_replaced_the_oldest_facts_of_the_largest_cluster_go() -> None:
    outbox = Outbox(OutboxLimits(waiting_facts=10))
    outbox.add(OTHER, [event(1, "small")], steady=0)
    outbox.add(CLUSTER, [event(1, f"e-{number}") for number in range(10)], steady=0)
    batches = {batch.cluster: batch for batch in outbox.take_due(10)}
    assert [fact.uid for fact in batches[CLUSTER].facts] == [f"e-{number}" for number in range(5, 10)]
    assert (len(batches[OTHER].facts), batches[CLUSTER].losses) == (1, Losses(events=5))


def test_everything_can_be_taken_at_the_end() -> None:
    outbox = Outbox(OutboxLimits(burst=1, per_hour=1))
    outbox.add(CLUSTER, [pod(0)], steady=0)
    outbox.add(OTHER, [pod(1)], steady=0)
    batches = outbox.take_due(0, all_of_it=True)
    assert {batch.cluster for batch in batches} == {CLUSTER, OTHER}
    assert outbox.oldest_since() is None


FACTS = st.one_of(
    st.builds(pod, st.integers(0, 99), st.sampled_from(["p-1", "p-2", "p-3"])),
    st.builds(event, st.integers(1, 9), st.sampled_from(["e-1", "e-2"])),
)


@settings(max_examples=50)
@given(facts=st.lists(FACTS, max_size=12), most=st.integers(0, 12))
def test_no_more_is_kept_than_asked_for_and_every_pods_state_is_kept_or_counted(
    facts: list[SeenFact], most: int
) -> None:
    kept, losses = coalesce(facts, most)
    assert len(kept) <= most
    pods = [fact for fact in facts if isinstance(fact, PodFact)]
    assert len([fact for fact in kept if isinstance(fact, PodFact)]) + losses.pods == len(pods)
    rest = iter(facts)
    assert all(fact in rest for fact in kept)  # in the order in which they came


def test_a_batch_keeps_its_place_in_time() -> None:
    batch = Batch(CLUSTER, (pod(0),), since=7.0)
    outbox = Outbox()
    outbox.give_back(batch)
    assert outbox.oldest_since() == 7.0
