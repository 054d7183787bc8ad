"""At no moment may two replicas write, whatever is delayed, lost, paused, restarted or set back.

A model of one API server and two replicas that run the real `LeaseClient`. Every request goes through three steps
that happen whenever hypothesis likes: it is sent, the server acts on it, its answer arrives. Time passes in between.
Steady clocks have different origins but the same rate; wall clocks are anything.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from prometheus_client import CollectorRegistry

from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.kube.errors import ApiError, Conflict
from raykeeper.kube.leader.fence import LeaseFence
from raykeeper.kube.leader.lease import Candidate, ElectionSettings
from raykeeper.kube.leader.leaseclient import LeadershipLost, LeaseClient
from raykeeper.kube.metrics import KubeMetrics
from support.clocks import ManualClock

KEY = ObjectKey("ray-system", "ray-operator-leader")
SETTINGS = ElectionSettings()
METRICS = KubeMetrics(CollectorRegistry())
REPLICAS = st.integers(0, 1)
SECONDS = st.sampled_from([0.1, 2.0, 6.0, 9.9, 14.9, 15.0])


@dataclass
class Call:
    """One request on its way: `body` None is a read; an empty resourceVersion is a create."""

    body: JSON | None
    answer: JSON | ApiError | None = None
    is_applied: bool = False


@types.coroutine
def _ask(call: Call) -> Generator[Call, JSON, JSON]:
    return (yield call)


class ModelKube:
    """The three methods of `Kube` that a LeaseClient uses, as requests for the model to deliver."""

    async def find(self, resource: Resource[JSON], key: ObjectKey) -> JSON | None:
        return await _ask(Call(None))

    async def create(self, resource: Resource[JSON], body: JSON, namespace: str) -> JSON:
        return await _ask(Call(body))

    async def replace(self, resource: Resource[JSON], body: JSON) -> JSON:
        return await _ask(Call(body))


class Server:
    """One Lease with optimistic locking."""

    def __init__(self) -> None:
        self.lease: JSON | None = None
        self.version = 0

    def apply(self, call: Call) -> None:
        call.is_applied = True
        if call.body is None:
            call.answer = self.lease
        elif call.body["metadata"].get("resourceVersion") != self._current():
            call.answer = Conflict("put lease", 409, "Conflict", "changed")
        else:
            self.version += 1
            metadata = {**call.body["metadata"], "resourceVersion": str(self.version)}
            self.lease = call.answer = {**call.body, "metadata": metadata}

    def _current(self) -> str | None:
        return self.lease["metadata"]["resourceVersion"] if self.lease else None


class Replica:
    """One process: its clocks, its fence, and the one call it waits for."""

    def __init__(self, identity: str, clock: ManualClock) -> None:
        self.clock = clock
        self.fence = LeaseFence(clock, METRICS)
        candidate = Candidate(identity, SETTINGS.lease_duration)
        self.client = LeaseClient(ModelKube(), KEY, candidate, self.fence, clock, SETTINGS.fence_deadline)
        self.call: Call | None = None
        self.has_led = False
        self._run: Coroutine[Any, Any, object] | None = None

    def start(self, run: Coroutine[Any, Any, object]) -> None:
        self._run = run
        self._step(lambda: run.send(None))

    def hear(self, answer: JSON | ApiError | None) -> None:
        run = self._run
        assert run is not None
        self._step(lambda: run.throw(answer) if isinstance(answer, ApiError) else run.send(answer))

    def give_up(self) -> None:
        """What a time-out does."""
        assert self._run is not None
        self._run.close()
        self.call = self._run = None

    def _step(self, step: Callable[[], Call]) -> None:
        self.call = None
        try:
            self.call = step()
        except (StopIteration, ApiError):
            self._run = None
        except LeadershipLost:
            self.fence.close()
        self.has_led |= self.fence.is_open

    @property
    def is_over(self) -> bool:
        """Whether it led and lost the lease: then an elector ends the process."""
        return self.has_led and not self.fence.is_open


class Replicas(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.server = Server()
        self.stray: list[Call] = []
        self.born = 0
        self.replicas = [self._new_replica(ManualClock(steady)) for steady in (0.0, 5000.0)]

    def _new_replica(self, clock: ManualClock) -> Replica:
        self.born += 1
        return Replica(f"replica-{self.born}", clock)

    @rule(index=REPLICAS)
    def moves_one_step(self, index: int) -> None:
        """Sends a request, or the server acts on it, or its answer arrives: whatever is next."""
        replica = self.replicas[index]
        if replica.call is None and replica.is_over:
            self.is_killed_and_restarted(index)
        elif replica.call is None:
            replica.start(replica.client.get_or_keep())
        elif not replica.call.is_applied:
            self.server.apply(replica.call)
        else:
            replica.hear(replica.call.answer)

    @rule(index=REPLICAS)
    def tries_with_quick_answers(self, index: int) -> None:
        if self.replicas[index].call is None:
            self.moves_one_step(index)
            self.hears(index)

    @rule(index=REPLICAS)
    def hears(self, index: int) -> None:
        while self.replicas[index].call is not None:
            self.moves_one_step(index)

    @rule(index=REPLICAS, delay=SECONDS)
    def writes_and_the_answer_is_late(self, index: int, delay: float) -> None:
        replica = self.replicas[index]
        if replica.call is None:
            self.moves_one_step(index)
        while replica.call is not None and (replica.call.body is None or not replica.call.is_applied):
            self.moves_one_step(index)
        self.time_passes(delay, {index})
        self.hears(index)

    @rule(index=REPLICAS)
    def request_times_out(self, index: int) -> None:
        replica = self.replicas[index]
        if replica.call is not None:
            self.stray.append(replica.call)
            replica.give_up()

    @precondition(lambda self: self.stray)
    @rule(data=st.data())
    def stray_request_reaches_the_server_after_all(self, data: st.DataObject) -> None:
        call = self.stray.pop(data.draw(st.integers(0, len(self.stray) - 1)))
        if not call.is_applied:
            self.server.apply(call)

    @rule(index=REPLICAS)
    def stops(self, index: int) -> None:
        replica = self.replicas[index]
        if replica.call is None and replica.fence.is_open:
            replica.fence.close()
            replica.start(replica.client.release())

    @rule(index=REPLICAS)
    def is_killed_and_restarted(self, index: int) -> None:
        replica = self.replicas[index]
        if replica.call is not None:
            self.request_times_out(index)
        self.replicas[index] = self._new_replica(replica.clock)

    @rule(seconds=SECONDS, paused=st.sets(REPLICAS, max_size=1))
    def time_passes(self, seconds: float, paused: set[int]) -> None:
        """Meanwhile those not paused and not waiting for an answer try every second."""
        while seconds > 0:
            for replica in self.replicas:
                replica.clock.advance(min(1.0, seconds))
            seconds -= 1.0
            self.at_most_one_may_write()
            for index in {0, 1} - paused:
                self.tries_with_quick_answers(index)

    @rule(index=REPLICAS, seconds=st.sampled_from([-3600.0, -2.0, -1.0, 1.0, 86400.0]))
    def wall_clock_is_set(self, index: int, seconds: float) -> None:
        self.replicas[index].clock.jump(seconds)

    @rule()
    def lease_is_annotated_by_a_person(self) -> None:
        if self.server.lease is not None:
            self.server.apply(Call({**self.server.lease}))

    @invariant()
    def at_most_one_may_write(self) -> None:
        assert sum(replica.fence.is_open for replica in self.replicas) <= 1


TestReplicas = Replicas.TestCase
TestReplicas.settings = settings(max_examples=200, stateful_step_count=50, deadline=None)


def test_an_answer_that_comes_late_gives_no_more_time() -> None:
    model = Replicas()
    model.writes_and_the_answer_is_late(0, 9.9)
    model.time_passes(15.0, paused={0})


def test_the_model_does_elect_and_hand_over() -> None:
    """The property above is worth something only if there are leaders in the model at all."""
    model = Replicas()
    model.tries_with_quick_answers(0)
    assert [replica.fence.is_open for replica in model.replicas] == [True, False]
    model.time_passes(17.0, paused={0})
    assert [replica.fence.is_open for replica in model.replicas] == [False, True]
    model.is_killed_and_restarted(0)
    model.stops(1)
    model.hears(1)
    model.tries_with_quick_answers(0)
    assert [replica.fence.is_open for replica in model.replicas] == [True, False]
