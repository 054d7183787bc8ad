"""Expectations: satisfied when the informer has shown all we did, and not before."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from raykeeper.kube.controllers.expectations import SHOWN_WITHIN_SECONDS, UNSURE_SECONDS, Expectations
from support.clocks import ManualClock

OWNER = "ns/cluster"


def some_expectations(clock: ManualClock | None = None) -> Expectations[str]:
    return Expectations(clock or ManualClock())


# --- creates ---------------------------------------------------------------------------------------------------------


def test_an_owner_of_whom_nothing_is_expected_is_satisfied() -> None:
    expectations = some_expectations()
    assert expectations.satisfied(OWNER)
    assert expectations.seconds_left(OWNER) is None


def test_a_create_is_in_flight_until_the_informer_shows_its_object() -> None:
    expectations = some_expectations()
    expectations.expect_create(OWNER, "pod")
    assert not expectations.satisfied(OWNER)
    expectations.create_answered(OWNER, "pod", "uid")
    assert not expectations.satisfied(OWNER)
    expectations.created_seen(OWNER, "pod", "uid")
    assert expectations.satisfied(OWNER)


def test_a_watch_event_may_overtake_the_answer() -> None:
    expectations = some_expectations()
    expectations.expect_create(OWNER, "pod")
    expectations.created_seen(OWNER, "pod", "uid")
    expectations.create_answered(OWNER, "pod", "uid")
    assert expectations.satisfied(OWNER)


def test_one_object_seen_twice_does_not_stand_for_two() -> None:
    expectations = some_expectations()
    for name in ("one", "two"):
        expectations.expect_create(OWNER, name)
        expectations.create_answered(OWNER, name, f"uid-{name}")
    for _ in range(3):
        expectations.created_seen(OWNER, "one", "uid-one")
    assert not expectations.satisfied(OWNER)
    expectations.created_seen(OWNER, "two", "uid-two")
    assert expectations.satisfied(OWNER)


def test_news_of_an_older_object_of_the_same_name_does_not_count() -> None:
    expectations = some_expectations()
    expectations.expect_create(OWNER, "head")
    expectations.created_seen(OWNER, "head", "old")
    expectations.create_answered(OWNER, "head", "new")
    expectations.deleted_seen(OWNER, "head", "old")
    assert not expectations.satisfied(OWNER)
    expectations.created_seen(OWNER, "head", "new")
    assert expectations.satisfied(OWNER)


def test_a_refused_create_is_not_waited_for() -> None:
    expectations = some_expectations()
    expectations.expect_create(OWNER, "pod")
    expectations.create_failed(OWNER, "pod")
    assert expectations.satisfied(OWNER)


def test_a_create_without_an_answer_is_waited_for_until_its_name_is_shown() -> None:
    expectations = some_expectations()
    expectations.expect_create(OWNER, "pod")
    expectations.create_unsure(OWNER, "pod")
    assert not expectations.satisfied(OWNER)
    expectations.created_seen(OWNER, "pod", "uid")
    assert expectations.satisfied(OWNER)


def test_a_create_without_an_answer_may_have_been_shown_already() -> None:
    expectations = some_expectations()
    expectations.expect_create(OWNER, "pod")
    expectations.created_seen(OWNER, "pod", "uid")
    expectations.create_unsure(OWNER, "pod")
    assert expectations.satisfied(OWNER)


def test_a_create_without_an_answer_is_given_up_once_the_server_must_have() -> None:
    clock = ManualClock()
    expectations = some_expectations(clock)
    expectations.expect_create(OWNER, "pod")
    expectations.create_unsure(OWNER, "pod")
    assert expectations.seconds_left(OWNER) == UNSURE_SECONDS
    clock.advance(UNSURE_SECONDS)
    assert expectations.satisfied(OWNER)


def test_an_object_that_went_before_it_was_shown_is_not_waited_for() -> None:
    expectations = some_expectations()
    expectations.expect_create(OWNER, "pod")
    expectations.create_answered(OWNER, "pod", "uid")
    expectations.deleted_seen(OWNER, "pod", "uid")
    assert expectations.satisfied(OWNER)


# --- deletes ---------------------------------------------------------------------------------------------------------


def test_a_delete_is_in_flight_until_the_informer_shows_it() -> None:
    expectations = some_expectations()
    expectations.expect_delete(OWNER, "uid")
    expectations.created_seen(OWNER, "pod", "uid")
    assert not expectations.satisfied(OWNER)
    expectations.deleted_seen(OWNER, "pod", "uid")
    assert expectations.satisfied(OWNER)


def test_an_object_made_again_under_the_same_name_is_not_the_deleted_one() -> None:
    expectations = some_expectations()
    expectations.expect_delete(OWNER, "old")
    expectations.created_seen(OWNER, "head", "new")
    expectations.deleted_seen(OWNER, "head", "new")
    assert not expectations.satisfied(OWNER)
    expectations.deleted_seen(OWNER, "head", "old")
    assert expectations.satisfied(OWNER)


def test_a_refused_delete_is_not_waited_for() -> None:
    expectations = some_expectations()
    expectations.expect_delete(OWNER, "uid")
    expectations.delete_failed(OWNER, "uid")
    assert expectations.satisfied(OWNER)


# --- time-outs and owners --------------------------------------------------------------------------------------------


def test_what_is_never_shown_is_given_up_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    expectations = some_expectations(clock)
    expectations.expect_create(OWNER, "pod")
    expectations.create_answered(OWNER, "pod", "uid")
    expectations.expect_delete(OWNER, "other")
    assert expectations.seconds_left(OWNER) == SHOWN_WITHIN_SECONDS
    clock.advance(SHOWN_WITHIN_SECONDS - 1)
    assert not expectations.satisfied(OWNER)
    assert expectations.seconds_left(OWNER) == 1
    clock.advance(1)
    assert expectations.satisfied(OWNER)
    assert expectations.satisfied(OWNER)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_the_time_out_counts_from_the_answer() -> None:
    clock = ManualClock()
    expectations = some_expectations(clock)
    expectations.expect_create(OWNER, "pod")
    clock.advance(100)
    expectations.create_answered(OWNER, "pod", "uid")
    assert expectations.seconds_left(OWNER) == SHOWN_WITHIN_SECONDS


def test_only_what_is_late_is_given_up() -> None:
    clock = ManualClock()
    expectations = some_expectations(clock)
    expectations.expect_create(OWNER, "early")
    clock.advance(SHOWN_WITHIN_SECONDS / 2)
    expectations.expect_create(OWNER, "late")
    clock.advance(SHOWN_WITHIN_SECONDS / 2)
    assert not expectations.satisfied(OWNER)


def test_owners_do_not_wait_for_each_other() -> None:
    expectations = some_expectations()
    expectations.expect_create("a", "pod")
    assert expectations.satisfied("b")
    expectations.created_seen("b", "pod", "uid")
    expectations.deleted_seen("b", "pod", "uid")
    assert not expectations.satisfied("a")


def test_a_forgotten_owner_leaves_nothing_behind() -> None:
    expectations = some_expectations()
    expectations.expect_create(OWNER, "pod")
    expectations.expect_delete(OWNER, "uid")
    expectations.forget(OWNER)
    expectations.forget(OWNER)
    assert len(expectations) == 0


# --- any interleaving ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Event:
    """What a watch delivers about one object."""

    name: str
    uid: str
    is_gone: bool = False


@dataclass
class Write:
    """A create or delete of ours, from the moment it is announced."""

    name: str
    deadline: float
    shown_before: int  # how many events the informer had shown by then
    uid: str | None = None
    is_delete: bool = False
    state: Literal["flying", "answered", "unsure", "over"] = "flying"


NAMES = st.sampled_from(["head", "worker-1", "worker-2"])


class AnyInterleaving(RuleBasedStateMachine):
    """A server, a lagging informer and answers that come late or never, against what `satisfied` may say."""

    @initialize()
    def start(self) -> None:
        self.clock = ManualClock()
        self.expectations = some_expectations(self.clock)
        self.server: dict[str, str] = {}  # name -> uid
        self.waiting: list[Event] = []  # on their way to the informer
        self.shown: list[Event] = []
        self.writes: list[Write] = []
        self.uids = 0

    # The world.

    def _put(self, name: str) -> str:
        self.uids += 1
        uid = self.server[name] = f"uid-{self.uids}"
        self.waiting.append(Event(name, uid))
        return uid

    def _remove(self, name: str) -> None:
        self.waiting.append(Event(name, self.server.pop(name), is_gone=True))

    def _show(self, event: Event) -> None:
        self.shown.append(event)
        seen = self.expectations.deleted_seen if event.is_gone else self.expectations.created_seen
        seen(OWNER, event.name, event.uid)

    def _cache(self) -> dict[str, str]:
        latest = {event.name: event for event in self.shown}
        return {name: event.uid for name, event in latest.items() if not event.is_gone}

    @rule(name=NAMES)
    def someone_else_interferes(self, name: str) -> None:
        if name in self.server:
            self._remove(name)
        else:
            self._put(name)

    @rule(name=NAMES)
    def an_object_changes(self, name: str) -> None:
        if name in self.server:
            self.waiting.append(Event(name, self.server[name]))

    @precondition(lambda self: self.waiting)
    @rule(times=st.integers(1, 3))
    def informer_shows_the_next_event(self, times: int) -> None:
        event = self.waiting.pop(0)
        for _ in range(times):
            self._show(event)

    @precondition(lambda self: self.waiting)
    @rule()
    def informer_lists_again(self) -> None:
        """After a gap: what the cache had and is gone, what is there; nothing about what came and went meanwhile."""
        self.waiting.clear()
        for name, uid in self._cache().items():
            if self.server.get(name) != uid:
                self._show(Event(name, uid, is_gone=True))
        for name, uid in self.server.items():
            self._show(Event(name, uid))

    @rule(seconds=st.sampled_from([1.0, UNSURE_SECONDS, SHOWN_WITHIN_SECONDS]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.expectations.satisfied(OWNER)
        for write in self.writes:
            if write.deadline <= self.clock.steady() and self._is_in_flight(write):
                write.state = "over"

    # Our writes. An owner has at most one of a name in flight: it is not reconciled before it is satisfied.

    def _is_name_free(self, name: str) -> bool:
        return not any(write.name == name and self._is_in_flight(write) for write in self.writes)

    def _announce(self, name: str, uid: str | None = None) -> None:
        deadline = self.clock.steady() + SHOWN_WITHIN_SECONDS
        self.writes.append(Write(name, deadline, len(self.shown), uid, is_delete=uid is not None))

    @rule(name=NAMES)
    def announce_create(self, name: str) -> None:
        if self._is_name_free(name):
            self.expectations.expect_create(OWNER, name)
            self._announce(name)

    @rule(name=NAMES)
    def announce_delete(self, name: str) -> None:
        """Of the object that the cache shows, whether or not it is still there."""
        uid = self._cache().get(name)
        if uid is not None and self._is_name_free(name):
            self.expectations.expect_delete(OWNER, uid)
            self._announce(name, uid)

    @rule(which=st.integers(0, 5))
    def server_creates_before_the_answer(self, which: int) -> None:
        flying = [w for w in self.writes if w.state == "flying" and not w.is_delete and w.uid is None]
        if flying:
            write = flying[which % len(flying)]
            if write.name not in self.server:
                write.uid = self._put(write.name)

    @rule(which=st.integers(0, 5), is_lost=st.booleans())
    def a_call_returns(self, which: int, is_lost: bool) -> None:
        flying = [write for write in self.writes if write.state == "flying"]
        if flying:
            self._return(flying[which % len(flying)], is_lost=is_lost)

    def _return(self, write: Write, *, is_lost: bool) -> None:
        if write.is_delete:
            self._return_delete(write)
        elif is_lost:
            write.state, write.deadline = "unsure", self.clock.steady() + UNSURE_SECONDS
            self.expectations.create_unsure(OWNER, write.name)
        elif write.uid is None:
            write.state = "over"
            self.expectations.create_failed(OWNER, write.name)
        else:
            write.state, write.deadline = "answered", self.clock.steady() + SHOWN_WITHIN_SECONDS
            self.expectations.create_answered(OWNER, write.name, write.uid)

    def _return_delete(self, write: Write) -> None:
        assert write.uid is not None
        if self.server.get(write.name) == write.uid:
            self._remove(write.name)
            write.state = "answered"
        else:
            write.state = "over"
            self.expectations.delete_failed(OWNER, write.uid)  # 404, or 409 as the uid is another

    # What must hold.

    def _is_in_flight(self, write: Write) -> bool:
        """Straight from what was shown since the write was announced."""
        if write.state == "over":
            return False
        shown = self.shown[write.shown_before :]
        if write.is_delete:
            return Event(write.name, str(write.uid), is_gone=True) not in shown
        if write.state == "unsure":
            return not any(event.name == write.name for event in shown)
        return write.state == "flying" or not any(event.uid == write.uid for event in shown)

    @invariant()
    def satisfied_exactly_when_nothing_is_in_flight(self) -> None:
        in_flight = [write for write in self.writes if self._is_in_flight(write)]
        assert self.expectations.satisfied(OWNER) == (not in_flight), in_flight

    @invariant()
    def the_first_time_out_is_known(self) -> None:
        deadlines = [write.deadline for write in self.writes if self._is_in_flight(write)]
        left = min(deadlines) - self.clock.steady() if deadlines else None
        assert self.expectations.seconds_left(OWNER) == left

    def teardown(self) -> None:
        """Once every call has returned and the informer has caught up or the time is over, nothing is left."""
        for write in self.writes:
            if write.state == "flying":
                self._return(write, is_lost=False)
        self.clock.advance(SHOWN_WITHIN_SECONDS)
        assert self.expectations.satisfied(OWNER)
        assert len(self.expectations) == 0


AnyInterleaving.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestAnyInterleaving = AnyInterleaving.TestCase
