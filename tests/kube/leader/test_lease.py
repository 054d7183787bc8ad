"""The Lease as data, and what a candidate may do with it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.kube.leader.lease import (
    Candidate,
    Create,
    LeasePlan,
    Renew,
    Sighting,
    TakeOver,
    Wait,
    desired_lease,
    new_identity,
    parse_lease,
    plan_lease,
    released_lease,
    sighted,
)

KEY = ObjectKey("ray-system", "ray-operator-leader")
ME = Candidate("me", annotations={"raykeeper.io/version": "1"})
NOW = datetime(2026, 11, 16, 12, 0, 0, 5, tzinfo=UTC)


def a_lease(holder: str = "other", duration: int | None = 15, renewed: str = "2026-11-16T11:59:59.000000Z") -> JSON:
    spec: JSON = {"holderIdentity": holder, "renewTime": renewed, "acquireTime": "2026-11-16T11:00:00.000000Z"}
    if duration is not None:
        spec["leaseDurationSeconds"] = duration
    return {"metadata": {"name": KEY.name, "namespace": KEY.namespace, "resourceVersion": "7"}, "spec": spec}


def seen(body: JSON, since: float = 100.0) -> Sighting:
    return Sighting(body, parse_lease(body), since)


@pytest.mark.parametrize(
    ("sighting", "steady", "plan"),
    [
        (None, 100.0, Create()),
        (seen(a_lease("me")), 500.0, Renew()),
        (seen(a_lease("other")), 100.0, Wait(115.0, "other")),
        (seen(a_lease("other")), 114.9, Wait(115.0, "other")),
        (seen(a_lease("other")), 115.0, TakeOver()),
        (seen(a_lease("other", duration=60)), 159.0, Wait(160.0, "other")),
        (seen(a_lease("other", duration=None)), 114.0, Wait(115.0, "other")),
        (seen(a_lease("")), 100.0, TakeOver()),
        (Sighting(None, parse_lease(a_lease("other")), 100.0), 114.0, Wait(115.0, "other")),
        (Sighting(None, parse_lease(a_lease("other")), 100.0), 115.0, Create()),
        (Sighting(None, parse_lease(a_lease("me")), 100.0), 101.0, Create()),
        (Sighting(None, parse_lease(a_lease("")), 100.0), 100.0, Create()),
    ],
)
def test_a_candidate_waits_for_the_duration_the_holder_wrote_and_not_longer(
    sighting: Sighting | None, steady: float, plan: LeasePlan
) -> None:
    assert plan_lease(sighting, ME, steady) == plan


@given(skew=st.timedeltas(timedelta(days=-3650), timedelta(days=3650)))
def test_the_holders_wall_clock_does_not_matter(skew: timedelta) -> None:
    renewed = (NOW + skew).isoformat(timespec="microseconds").replace("+00:00", "Z")
    first = sighted(None, a_lease(renewed=renewed), 100.0)
    assert plan_lease(first, ME, 114.0) == Wait(115.0, "other")
    assert plan_lease(first, ME, 115.0) == TakeOver()


def test_only_a_changed_record_starts_the_holders_time_anew() -> None:
    first = sighted(None, a_lease(), 100.0)
    annotated = a_lease()
    annotated["metadata"] |= {"resourceVersion": "8", "annotations": {"seen": "by a person"}}
    second = sighted(first, annotated, 110.0)
    assert second is not None
    assert (second.since, second.body) == (100.0, annotated)
    renewed = sighted(second, a_lease(renewed="2026-11-16T12:00:01.000000Z"), 112.0)
    assert renewed is not None
    assert renewed.since == 112.0


def test_a_deleted_lease_leaves_its_holder_the_time_it_had() -> None:
    gone = sighted(sighted(None, a_lease(), 100.0), None, 105.0)
    assert plan_lease(gone, ME, 105.0) == Wait(115.0, "other")


def test_the_first_lease_is_what_client_go_creates() -> None:
    assert desired_lease(KEY, None, ME, NOW) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "namespace": "ray-system",
            "name": "ray-operator-leader",
            "annotations": {"raykeeper.io/version": "1"},
        },
        "spec": {
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-11-16T12:00:00.000005Z",
            "renewTime": "2026-11-16T12:00:00.000005Z",
            "leaseTransitions": 0,
        },
    }


def test_a_take_over_counts_a_transition_and_keeps_what_it_does_not_know() -> None:
    body = a_lease()
    body["metadata"] |= {"annotations": {"team": "a"}, "labels": {"x": "y"}}
    body["spec"] |= {"leaseTransitions": 3, "strategy": "OldestEmulationVersion"}
    lease = desired_lease(KEY, seen(body), ME, NOW)
    assert lease["metadata"]["annotations"] == {"team": "a", "raykeeper.io/version": "1"}
    assert lease["metadata"]["labels"] == {"x": "y"}
    assert lease["metadata"]["resourceVersion"] == "7"
    assert lease["spec"]["strategy"] == "OldestEmulationVersion"
    assert lease["spec"]["leaseTransitions"] == 4
    assert lease["spec"]["acquireTime"] == lease["spec"]["renewTime"] == "2026-11-16T12:00:00.000005Z"
    assert body["spec"]["holderIdentity"] == "other", "the observed object must stay as it was read"


def test_a_renewal_keeps_when_it_was_acquired_and_the_transitions() -> None:
    body = a_lease("me")
    body["spec"]["leaseTransitions"] = 3
    spec = desired_lease(KEY, seen(body), ME, NOW)["spec"]
    assert (spec["acquireTime"], spec["leaseTransitions"]) == ("2026-11-16T11:00:00.000000Z", 3)
    assert spec["renewTime"] == "2026-11-16T12:00:00.000005Z"


def test_a_renewal_is_visible_even_if_the_wall_clock_was_set_back() -> None:
    mine = seen(desired_lease(KEY, None, ME, NOW))
    assert parse_lease(desired_lease(KEY, mine, ME, NOW)) != mine.record


def test_a_released_lease_is_free_at_once() -> None:
    body = a_lease("me")
    freed = released_lease(body, NOW)
    assert freed["spec"]["holderIdentity"] == ""
    assert freed["spec"]["leaseDurationSeconds"] == 1
    assert freed["metadata"] == body["metadata"]
    assert plan_lease(seen(freed), Candidate("next"), 100.0) == TakeOver()


def test_an_identity_is_the_host_and_never_the_same_twice() -> None:
    first, second = new_identity(), new_identity()
    assert first != second
    assert first.rpartition("_")[0] == second.rpartition("_")[0] != ""
