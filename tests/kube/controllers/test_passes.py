"""Who may begin a pass: workers are not held by what waits, and no namespace has all places."""

from __future__ import annotations

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from raykeeper.kube.controllers.passes import LEAST_PLACES, QUICK_SECONDS, Passes

Key = tuple[str, int]
EVERYBODY = {"a", "b", "c", "d", "e"}


def namespace_of(key: Key) -> str:
    return key[0]


def some_passes(workers: int) -> Passes[Key]:
    return Passes(workers, namespace_of)


def begin_all(passes: Passes[Key], namespace: str, now: float) -> int:
    """Begin as many passes of a namespace as may; how many those were."""
    before = len(passes)
    while passes.has_room(now) and passes.may_begin(namespace):
        number = next(number for number in itertools.count() if (namespace, number) not in passes)
        passes.begin((namespace, number), now)
    return len(passes) - before


def hang(passes: Passes[Key], namespace: str, now: float) -> tuple[int, float]:
    """Begin passes that never end, for as long as any may; how many those were, and when it was over."""
    count = 0
    while more := begin_all(passes, namespace, now):
        count, now = count + more, now + QUICK_SECONDS
    return count, now


@given(workers=st.integers(1, 300))
def test_one_namespace_alone_has_every_worker(workers: int) -> None:
    passes = some_passes(workers)
    assert begin_all(passes, "a", 0.0) == workers
    for number in range(workers):  # and again for each one that ends
        passes.end(("a", number))
        assert begin_all(passes, "a", 0.5) == 1


def test_a_pass_that_lasts_leaves_its_worker_to_another() -> None:
    passes = some_passes(1)
    assert begin_all(passes, "a", 0.0) == 1
    assert passes.next_room() == QUICK_SECONDS
    assert not passes.has_room(QUICK_SECONDS - 0.01)
    assert passes.has_room(QUICK_SECONDS)
    assert passes.next_room() is None


@given(workers=st.integers(1, 40))
def test_a_namespace_whose_passes_all_hang_has_no_more_than_the_workers(workers: int) -> None:
    passes = some_passes(workers)
    count, now = hang(passes, "bad", 0.0)
    assert count == workers
    assert begin_all(passes, "good", now) == math.ceil(workers / 2), "half of them are there again for another"


@given(workers=st.integers(1, 40), hanging=st.integers(1, 10))
def test_whoever_comes_after_ten_namespaces_that_hang_has_a_place(workers: int, hanging: int) -> None:
    passes, now = some_passes(workers), 0.0
    for number in range(hanging):
        count, now = hang(passes, f"bad-{number}", now)
        assert count >= 1
    assert begin_all(passes, "good", now) >= 1


@given(workers=st.integers(1, 40))
def test_the_place_of_a_pass_that_ended_is_free_again(workers: int) -> None:
    passes = some_passes(workers)
    count, now = hang(passes, "bad", 0.0)
    for number in range(count):
        passes.end(("bad", number))
    assert len(passes) == 0
    assert not passes._of_namespace
    assert begin_all(passes, "bad", now) == workers


class AnyLoad(RuleBasedStateMachine):
    """Any namespaces with passes of any length."""

    @initialize(workers=st.integers(1, 30))
    def start(self, workers: int) -> None:
        self.workers = workers
        self.passes = some_passes(workers)
        self.now = 0.0
        self.began: dict[Key, float] = {}
        self.number = 0

    def quick(self) -> int:
        return sum(self.now - since < QUICK_SECONDS for since in self.began.values())

    def left(self) -> int:
        return self.passes.places - len(self.began)

    @rule(namespace=st.sampled_from(sorted(EVERYBODY)), count=st.integers(1, 20))
    def begin(self, namespace: str, count: int) -> None:
        for _ in range(count):
            mine = sum(key[0] == namespace for key in self.began)
            others = {key[0] for key in self.began} | {namespace}
            has_part = len(self.began) < self.workers or mine < self.workers / len(others)
            expected = self.quick() < self.workers and self.left() > 0 and has_part
            assert (self.passes.has_room(self.now) and self.passes.may_begin(namespace)) == expected
            if expected:
                self.number += 1
                self.began[namespace, self.number] = self.now
                self.passes.begin((namespace, self.number), self.now)

    @precondition(lambda self: self.began)
    @rule(which=st.integers(0, 100))
    def end(self, which: int) -> None:
        key = list(self.began)[which % len(self.began)]
        assert self.passes.end(key) == self.began.pop(key)

    @rule(seconds=st.sampled_from([0.25, 0.5, 1.0, 30.0]))
    def let_time_pass(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def no_more_than_promised(self) -> None:
        assert len(self.passes) == len(self.began) <= self.passes.places
        assert self.quick() <= self.workers

    @invariant()
    def no_namespace_has_more_than_the_workers(self) -> None:
        for namespace in EVERYBODY:
            assert sum(key[0] == namespace for key in self.began) <= self.workers


AnyLoad.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
TestAnyLoad = AnyLoad.TestCase


def test_there_are_places_also_where_one_object_is_reconciled_at_a_time() -> None:
    assert some_passes(1).places == LEAST_PLACES
    assert some_passes(100).places == 400
