"""The fence: when writes may leave."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from raykeeper.kube.errors import NotLeading
from raykeeper.kube.leader.fence import LeaseFence
from raykeeper.kube.metrics import KubeMetrics
from support.clocks import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(steady=100.0)


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def fence(clock: ManualClock, registry: CollectorRegistry) -> LeaseFence:
    return LeaseFence(clock, KubeMetrics(registry))


def test_a_fence_starts_closed(fence: LeaseFence) -> None:
    with pytest.raises(NotLeading):
        fence.check()


def test_writes_pass_until_the_deadline_and_not_at_it(fence: LeaseFence, clock: ManualClock) -> None:
    fence.extend(110.0)
    clock.advance(9.9)
    fence.check()
    clock.advance(0.1)
    with pytest.raises(NotLeading):
        fence.check()


def test_a_renewal_moves_the_deadline_and_an_older_answer_does_not_move_it_back(
    fence: LeaseFence, clock: ManualClock
) -> None:
    fence.extend(110.0)
    fence.extend(112.0)
    fence.extend(111.0)
    assert fence.remaining == 12.0


def test_a_fence_that_ran_out_never_opens_again(fence: LeaseFence, clock: ManualClock) -> None:
    fence.extend(110.0)
    clock.advance(20)
    fence.extend(140.0)
    assert not fence.is_open


def test_an_answer_that_comes_after_its_own_deadline_opens_nothing(fence: LeaseFence, clock: ManualClock) -> None:
    clock.advance(20)
    fence.extend(110.0)
    assert not fence.is_open
    fence.extend(130.0)
    assert fence.is_open, "the first one never opened it, so a later renewal may"


def test_a_closed_fence_stays_closed(fence: LeaseFence) -> None:
    fence.extend(110.0)
    fence.close()
    fence.extend(120.0)
    assert not fence.is_open


def test_the_wall_clock_does_not_matter(fence: LeaseFence, clock: ManualClock) -> None:
    fence.extend(110.0)
    clock.jump(3600)
    fence.check()


def test_withheld_writes_are_counted(fence: LeaseFence, registry: CollectorRegistry) -> None:
    for _ in range(2):
        with pytest.raises(NotLeading):
            fence.check()
    assert registry.get_sample_value("raykeeper_withheld_writes_total") == 2
