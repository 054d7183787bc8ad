"""Which other installations are in our way, decided from what their Leases show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.kube.leader.installations import (
    HOLDER,
    LEASE_NAME,
    WATCH_NAMESPACES,
    AnotherInstallation,
    Coverage,
    Neighbours,
    Ours,
    coverage_in_arguments,
    lease_annotations,
    parse_coverage,
    parse_installation,
)
from raykeeper.kube.leader.lease import Candidate, Sighting, desired_lease, parse_lease, released_lease

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
ALL = Coverage()


def a_lease(namespace: str, holder: str = "other_1", covers: str | None = "*", age: float = 1.0) -> JSON:
    """A Lease of another installation, renewed `age` seconds ago; `covers` None is KubeRay's, which does not say."""
    annotations = {} if covers is None else lease_annotations(parse_coverage(covers), holder, "0.1.0", "pod")
    renewed = NOW - timedelta(seconds=age)
    return desired_lease(ObjectKey(namespace, LEASE_NAME), None, Candidate(holder, 15, annotations), renewed)


class Asker:
    """Our installation in namespace `ours`, which asks about leases at moments the test names."""

    def __init__(self, covers: str = "*") -> None:
        self._neighbours = Neighbours(Ours("ours", parse_coverage(covers), "me_1"))

    def is_alone(self, *leases: JSON, at: float = 0.0) -> bool:
        now = NOW + timedelta(seconds=at)
        return self._neighbours.is_alone([parse_installation(lease) for lease in leases], 0.0, at, now)


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        ("*", "*", True),
        ("*", "a", True),
        ("a,b", "b,c", True),
        ("a", "b", False),
        ("", "a", True),
        (" a , b", "b", True),
    ],
)
def test_coverages_overlap_where_a_namespace_is_in_both(one: str, other: str, overlap: bool) -> None:
    assert parse_coverage(one).overlaps(parse_coverage(other)) is overlap
    assert parse_coverage(other).overlaps(parse_coverage(one)) is overlap


def test_what_our_lease_says_is_read_back() -> None:
    found = parse_installation(a_lease("a", "me_1", "x,y"))
    assert (found.covers, found.version) == (parse_coverage("y,x"), "0.1.0")


def test_annotations_of_an_earlier_holder_are_not_believed() -> None:
    """KubeRay's operator that takes over our Lease leaves our annotations in it."""
    lease = a_lease("a", "me_1", "x")
    lease["spec"]["holderIdentity"] = "kuberay-operator-6c_2"
    assert parse_installation(lease).covers is None


def test_without_another_lease_we_are_alone_at_once() -> None:
    assert Asker().is_alone()
    assert Asker().is_alone(a_lease("ours", "me_0")), "a replica of ours is no other installation"
    assert Asker().is_alone(a_lease("other", holder=""))
    assert Asker("a,b").is_alone(a_lease("other", covers="c"))


def test_a_fresh_lease_is_watched_until_it_moves_or_ran_out() -> None:
    asker = Asker()
    fresh = a_lease("other")
    assert not asker.is_alone(fresh)
    assert not asker.is_alone(fresh, at=18.0)
    assert asker.is_alone(fresh, at=19.0)


@pytest.mark.parametrize("age", [1.0, -300.0, 86400.0], ids=["fresh", "from the future", "from yesterday"])
def test_a_lease_that_is_renewed_under_our_eyes_is_alive_whatever_its_clock_says(age: float) -> None:
    asker = Asker()
    assert not asker.is_alone(a_lease("other", age=age))
    with pytest.raises(AnotherInstallation):
        asker.is_alone(a_lease("other", age=age - 2), at=2.0)


def test_a_lease_left_behind_long_ago_costs_one_renewal_period() -> None:
    asker = Asker()
    left = a_lease("other", covers=None, age=86400)
    assert not asker.is_alone(left)
    assert asker.is_alone(left, at=4.0)


def test_the_refusal_names_the_other_what_it_covers_and_the_cure() -> None:
    asker = Asker("a,b")
    asker.is_alone(a_lease("first", "op-1_x", "b,c"))
    with pytest.raises(AnotherInstallation) as refused:
        asker.is_alone(a_lease("first", "op-1_x", "b,c", age=-1), at=2.0)
    assert str(refused.value) == (
        "another operator runs in namespace first (holder op-1_x) and covers namespaces b, c, so both would work on "
        "the same objects; this one in namespace ours covers namespaces a, b: remove one, or give them "
        "--watch-namespace lists without a common namespace"
    )


def test_an_operator_that_does_not_say_what_it_covers_is_in_the_way_of_one_that_covers_everything() -> None:
    asker = Asker()
    asker.is_alone(a_lease("kuberay", "kuberay_1", covers=None))
    with pytest.raises(
        AnotherInstallation, match=r"nobody says which namespaces it covers.*--other-installations=kuberay="
    ):
        asker.is_alone(a_lease("kuberay", "kuberay_1", covers=None, age=-1), at=2.0)


def test_an_operator_that_does_not_say_what_it_covers_is_not_in_the_way_of_one_for_named_namespaces() -> None:
    asker = Asker("team-a")
    assert asker.is_alone(a_lease("kuberay", "kuberay_1", covers=None))
    assert asker.is_alone(a_lease("kuberay", "kuberay_1", covers=None, age=-1), at=2.0)


@pytest.mark.parametrize(
    ("container", "covers"),
    [
        ({"command": ["/manager"], "args": ["--watch-namespace=team-a,team-b"]}, "team-a,team-b"),
        ({"args": ["-watch-namespace", "team-a", "--enable-metrics"]}, "team-a"),
        ({"command": ["/manager"], "args": ["--enable-leader-election=true"]}, "*"),
        ({"args": ["--watch-namespace="]}, "*"),
        ({}, "*"),
        ({"args": ["--config=/etc/config.yaml"]}, None),
        ({"args": ["--watch-namespace=a", "--config", "/etc/config.yaml"]}, None),
    ],
)
def test_the_arguments_of_a_pod_tell_what_its_operator_covers(container: JSON, covers: str | None) -> None:
    expected = None if covers is None else parse_coverage(covers)
    assert coverage_in_arguments({"spec": {"containers": [container]}}) == expected


@dataclass
class Starter:
    """One installation of the model below: asks, gets its lease, asks again, works; or refuses and releases."""

    namespace: str
    starts_at: float
    election_seconds: float
    skew: timedelta
    lease: JSON | None = None
    state: str = "asking"
    asked_at: float | None = None
    acquires_at: float = 0.0
    neighbours: Neighbours = field(init=False)

    def __post_init__(self) -> None:
        self.neighbours = Neighbours(Ours(self.namespace, ALL, self.namespace))

    def step(self, world: Callable[[], list[JSON]], steady: float) -> None:
        if steady < self.starts_at or self.state == "refused":
            return
        now = NOW + timedelta(seconds=steady) + self.skew
        if self.state == "electing" and steady >= self.acquires_at:
            self.lease, self.state, self.asked_at = self._written(now), "asking again", steady
        elif self.lease is not None and int(steady) % 2 == 0:
            self.lease = self._written(now)
        if self.state.startswith("asking"):
            self._ask(world(), steady, now)

    def _ask(self, leases: list[JSON], steady: float, now: datetime) -> None:
        self.asked_at = steady if self.asked_at is None else self.asked_at
        try:
            alone = self.neighbours.is_alone(map(parse_installation, leases), self.asked_at, steady, now)
        except AnotherInstallation:
            self.state, self.lease = "refused", released_lease(self.lease, now) if self.lease else None
            return
        if alone:
            self.acquires_at = steady + self.election_seconds
            self.state = "electing" if self.lease is None else "working"

    def _written(self, now: datetime) -> JSON:
        sighting = Sighting(self.lease, parse_lease(self.lease), 0) if self.lease else None
        annotations = {WATCH_NAMESPACES: "*", HOLDER: self.namespace}
        candidate = Candidate(self.namespace, annotations=annotations)
        return desired_lease(ObjectKey(self.namespace, LEASE_NAME), sighting, candidate, now)


def starters(namespace: str) -> st.SearchStrategy[Starter]:
    return st.builds(
        Starter,
        st.just(namespace),
        st.integers(0, 30).map(float),
        st.integers(0, 5).map(float),
        st.timedeltas(timedelta(hours=-2), timedelta(hours=2)),
    )


@given(st.tuples(starters("a"), starters("b"), starters("c")), st.data())
@settings(max_examples=300, deadline=None)
def test_of_several_that_start_at_any_moments_exactly_one_works(
    installations: tuple[Starter, ...], data: st.DataObject
) -> None:
    """Also where wall clocks are hours apart."""

    def world() -> list[JSON]:
        return [installation.lease for installation in installations if installation.lease is not None]

    order = data.draw(st.permutations(installations))
    for steady in range(90):
        for installation in order:
            installation.step(world, float(steady))
        assert sum(installation.state == "working" for installation in installations) <= 1
    assert sorted(installation.state for installation in installations) == ["refused", "refused", "working"]
