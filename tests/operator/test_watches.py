"""Whose reconcile a change asks for."""

from __future__ import annotations

from typing import cast

import pytest

from raykeeper.api import labels
from raykeeper.api.meta import JSON, Object, ObjectKey, ObjectMeta, OwnerReference
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.api.rayjob import RAY_JOBS
from raykeeper.api.rayservice import RAY_SERVICES
from raykeeper.kube.client import Kube
from raykeeper.kube.controllers.requeue import Requeue
from raykeeper.kube.resources import PODS
from raykeeper.operator.controllers import ControllerRow, unattended
from raykeeper.operator.kinds import WATCHED_PODS, WATCHED_RAYCLUSTERS
from raykeeper.operator.watches import (
    Watch,
    any_change,
    choose_scope,
    controlled_by,
    itself,
    more_than_status,
    originated_from,
)

OWNER = OwnerReference("RayCluster", "first", "uid-1", "ray.io/v1", controller=True)


async def do_nothing(_: ObjectKey) -> Requeue:
    return Requeue.never()


def an_object(**changes: object) -> Object:
    return Object(ObjectMeta(**{"name": "first", "namespace": "team-a", "generation": 1, **changes}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("owners", "keys"),
    [
        ((OWNER,), [ObjectKey("team-a", "first")]),
        ((), []),
        ((OwnerReference("RayCluster", "first", "uid-1", "ray.io/v1alpha1", controller=True),), [("team-a", "first")]),
        ((OwnerReference("RayCluster", "first", "uid-1", "ray.io/v1"),), []),
        ((OwnerReference("RayJob", "first", "uid-1", "ray.io/v1", controller=True),), []),
        ((OwnerReference("RayCluster", "first", "uid-1", "example.org/v1", controller=True),), []),
    ],
    ids=["ours", "none", "older version", "does not control", "another kind", "another group"],
)
def test_an_owned_object_asks_for_the_owner_that_controls_it(
    owners: tuple[OwnerReference, ...], keys: list[ObjectKey]
) -> None:
    assert list(controlled_by(RAY_CLUSTERS)(an_object(owner_references=owners))) == keys


@pytest.mark.parametrize(
    ("change", "matters"),
    [
        ({"resource_version": "2"}, False),
        ({"generation": 2}, True),
        ({"labels": {"a": "b"}}, True),
        ({"annotations": {"a": "b"}}, True),
        ({"deletion_timestamp": "2026-01-01T00:00:00Z"}, True),
        ({"finalizers": ("a",)}, True),
    ],
)
def test_a_change_of_the_status_alone_does_not_matter(change: dict[str, object], matters: bool) -> None:
    assert more_than_status(an_object(), an_object(**change)) is matters


def test_appearing_changing_and_going_ask_for_a_reconcile_unless_it_is_no_news() -> None:
    asked: list[ObjectKey] = []
    handler = Watch(WATCHED_RAYCLUSTERS, itself, more_than_status).handler(lambda key, _: asked.append(key))
    old, same, new = an_object(), an_object(resource_version="2"), an_object(generation=2)
    for before, after in ((None, old), (old, same), (old, new), (new, None)):
        handler(before, after)
    assert asked == [("team-a", "first")] * 3


def test_an_object_that_moves_to_another_owner_asks_for_both() -> None:
    asked: list[ObjectKey] = []
    handler = Watch(WATCHED_PODS, controlled_by(RAY_CLUSTERS), any_change).handler(lambda key, _: asked.append(key))
    other = OwnerReference("RayCluster", "second", "uid-2", "ray.io/v1", controller=True)
    handler(an_object(owner_references=(OWNER,)), an_object(owner_references=(other,)))
    assert sorted(asked) == [("team-a", "first"), ("team-a", "second")]


def test_pods_are_selected_as_kuberay_selects_them() -> None:
    assert WATCHED_PODS.labels == "ray.io/node-type in (head,worker,redis-cleanup)"


def test_kinds_without_a_controller_are_known() -> None:
    row = ControllerRow("rayjob-controller", RAY_JOBS, (), make=lambda _: do_nothing)
    assert unattended([row]) == ["RayCluster", "RayService"]


def test_a_watch_says_how_long_to_wait_for_more_of_the_same() -> None:
    asked: list[tuple[ObjectKey, float]] = []
    handler = Watch(WATCHED_RAYCLUSTERS, itself, settle_seconds=0.2).handler(
        lambda key, wait: asked.append((key, wait))
    )
    item = an_object()
    handler(None, item)
    assert asked == [(item.key, 0.2)]


def test_what_carries_the_name_of_a_rayservice_asks_for_its_reconcile() -> None:
    marks = {labels.ORIGINATED_FROM_CRD: "RayService", labels.ORIGINATED_FROM_CR_NAME: "web"}
    slice_ = Object(ObjectMeta(name="web-serve-svc-x", namespace="ns", labels=marks))
    assert list(originated_from(RAY_SERVICES)(slice_)) == [ObjectKey("ns", "web")]
    assert list(originated_from(RAY_JOBS)(slice_)) == []
    assert list(originated_from(RAY_SERVICES)(Object(ObjectMeta(name="x", namespace="ns")))) == []


KINDS = [RAY_CLUSTERS, PODS]


class Reviews:
    """An API server that grants only these verbs on these kinds, in all namespaces."""

    def __init__(self, *granted: tuple[str, str]) -> None:
        self.granted = granted

    async def create(self, _resource: object, review: JSON) -> JSON:
        asked = review["spec"]["resourceAttributes"]
        assert asked["namespace"] == "", "a right in one namespace is not enough"
        return {"status": {"allowed": (asked["verb"], asked["resource"]) in self.granted}}


ALL = [(verb, kind.plural) for verb in ("list", "watch") for kind in KINDS]


@pytest.mark.parametrize(
    ("namespaces", "granted", "is_wide"),
    [(50, ALL, True), (50, ALL[1:], False), (50, [], False), (4, ALL, False), (0, ALL, False)],
    ids=["a role for all", "one right is missing", "a role in each", "few namespaces", "all namespaces"],
)
async def test_many_namespaces_are_followed_by_one_watch_of_a_kind_where_the_role_allows_that(
    namespaces: int, granted: list[tuple[str, str]], is_wide: bool
) -> None:
    kube = cast("Kube", Reviews(*granted))
    names = [f"team-{number}" for number in range(namespaces)]
    assert (await choose_scope(kube, names, KINDS, (1, 36))).is_wide == is_wide
