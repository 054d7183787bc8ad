"""Pods that were made and are not in the cache yet are not made twice, whatever comes in between."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from aiohttp import web
from prometheus_client import CollectorRegistry

from raykeeper.api import labels
from raykeeper.api.meta import JSON, Object, ObjectKey
from raykeeper.api.raycluster import RayCluster
from raykeeper.clock import SystemClock
from raykeeper.kube.events.writer import EventWriter
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.operator import kinds
from raykeeper.operator.context import Context
from raykeeper.operator.raycluster.apply import GroupKey
from raykeeper.operator.raycluster.reconcile import RayClusterReconciler
from raykeeper.operator.rayhead.client import Heads
from raykeeper.operator.rayhead.poller import HeadPoller
from raykeeper.operator.schedulers.none import NoScheduler
from raykeeper.operator.settings import OperatorSettings
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.services import desired_head_service
from raykeeper.operator.watches import Informers, WatchedKind
from support.kube_clients import connected
from support.operating import KUBERNETES
from support.raycluster_scene import TEMPLATE, a_group, a_raycluster
from support.scripted_server import served

KEY = ObjectKey("default", "demo")
SMALL = GroupKey(KEY, "small")


def stored(body: JSON) -> Object:
    """An object as a cache has it."""
    name = body["metadata"]["name"]
    given = {"namespace": "default", "uid": f"u-{name}", "resourceVersion": "1", "generation": 1}
    metadata = {**given, "creationTimestamp": "2026-01-01T00:00:00Z", **body["metadata"]}
    return msgspec.json.decode(msgspec.json.encode({**body, "metadata": metadata}), type=Object)


CLUSTER = stored(a_raycluster(a_group("small", 1)))
OWNER = Owner.of(RayCluster.from_object(CLUSTER))


def a_pod(name: str, group: str) -> Object:
    node_type = labels.HEAD if group == labels.HEAD_GROUP else labels.WORKER
    marks = {labels.CLUSTER: "demo", labels.GROUP: group, labels.NODE_TYPE: node_type, labels.IS_RAY_NODE: "yes"}
    return stored({"metadata": {"name": name, "labels": marks, "ownerReferences": [OWNER.reference()]}, **TEMPLATE})


class World:
    """A reconciler whose caches a test fills, and an API server that answers every write with what was sent."""

    def __init__(self, informers: Informers, reconcile: RayClusterReconciler) -> None:
        self.informers = informers
        self.reconcile = reconcile
        self.expectations = reconcile._expectations

    def show(self, kind: WatchedKind[Any], item: Object) -> None:
        """As a watch does."""
        self.informers.of(kind)._store.put(item)


@pytest.fixture
def writes() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def on_service_patch() -> list[Callable[[], None]]:
    """What happens while the patch of a service is on its way."""
    return []


@asynccontextmanager
async def api_server(
    folder: Path, writes: list[tuple[str, str]], on_service_patch: list[Callable[[], None]]
) -> AsyncIterator[Path]:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        writes.append((request.method, request.path))
        if request.method == "PATCH" and "/services/" in request.path:
            for happen in on_service_patch:
                happen()
        name = request.path.split("/")[-1]
        return web.json_response(
            {"metadata": {"name": name, "namespace": "default", "uid": "u", "resourceVersion": "2"}}
        )

    async with served(answer) as url:
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(
            yaml.safe_dump(
                {
                    "current-context": "x",
                    "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
                    "clusters": [{"name": "x", "cluster": {"server": url}}],
                    "users": [{"name": "x", "user": {}}],
                }
            )
        )
        yield kubeconfig


@pytest.fixture
async def world(
    tmp_path: Path, writes: list[tuple[str, str]], on_service_patch: list[Callable[[], None]]
) -> AsyncIterator[World]:
    metrics, clock = KubeMetrics(CollectorRegistry()), SystemClock()
    async with api_server(tmp_path, writes, on_service_patch) as kubeconfig, connected(kubeconfig) as kube:
        informers = Informers(kube, (), metrics, clock)
        events = EventWriter(kube, "test", clock=clock, metrics=metrics)
        context = Context(
            kube,
            informers,
            events.recorder,
            OperatorSettings(),
            KUBERNETES,
            metrics,
            clock,
            NoScheduler(),
            Heads.by(kube, clock, is_proxied=False),
            HeadPoller(clock),
        )
        yield World(informers, RayClusterReconciler(context))


async def test_a_pod_that_is_shown_while_a_child_is_repaired_is_not_made_again(
    world: World, writes: list[tuple[str, str]], on_service_patch: list[Callable[[], None]]
) -> None:
    """What was in flight when the caches were read decides, not what is in flight once the children are written."""
    service = desired_head_service(RayCluster.from_object(CLUSTER))
    service["metadata"]["labels"].pop(labels.NODE_TYPE)
    world.show(kinds.WATCHED_RAYCLUSTERS, CLUSTER)
    world.show(kinds.WATCHED_HEAD_SERVICES, stored(service))
    world.show(kinds.WATCHED_PODS, a_pod("demo-head-aaaaa", labels.HEAD_GROUP))
    world.expectations.expect_create(SMALL, "demo-small-worker-aaaaa")
    world.expectations.create_unsure(SMALL, "demo-small-worker-aaaaa")
    on_service_patch.append(lambda: world.show(kinds.WATCHED_PODS, a_pod("demo-small-worker-aaaaa", "small")))
    await world.reconcile(KEY)
    assert ("PATCH", "/api/v1/namespaces/default/services/demo-head-svc") in writes
    assert world.expectations.satisfied(SMALL)
    assert not [path for method, path in writes if method == "POST" and path.endswith("/pods")]


async def test_what_is_in_flight_for_a_cluster_is_forgotten_with_it(world: World) -> None:
    world.expectations.expect_create(SMALL, "demo-small-worker-aaaaa")
    world.expectations.expect_create(GroupKey(ObjectKey("default", "other"), "small"), "other-small-worker-aaaaa")
    await world.reconcile(KEY)
    assert world.expectations.satisfied(SMALL)
    assert len(world.expectations) == 1
