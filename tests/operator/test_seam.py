"""A controller put in as a row of the table works with shared caches on a real API server."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bed.control_plane import ControlPlane
from bed.fixtures import make_namespace, remove_namespace
from bed.waiting import wait_until
from raykeeper.operator.kinds import WATCHED_PODS
from support.operator_processes import OperatorProcess, Operators, operators_of

NOTING_OPERATOR = (sys.executable, Path(__file__).parent / "programs" / "noting_operator.py")


class World:
    """RayClusters, pods and notes of two namespaces, of which one is watched."""

    def __init__(self, plane: ControlPlane, watched: str, other: str) -> None:
        self._plane = plane
        self.watched = watched
        self.other = other

    def make_cluster(self, name: str, namespace: str) -> None:
        template = {"spec": {"containers": [{"name": "ray", "image": "ray"}]}}
        body = {
            "apiVersion": "ray.io/v1",
            "kind": "RayCluster",
            "metadata": {"name": name},
            "spec": {"headGroupSpec": {"rayStartParams": {}, "template": template}},
        }
        self._plane.admin.post(f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters", body)

    def make_pod(self, name: str, labels: dict[str, str]) -> None:
        spec = {"containers": [{"name": "ray", "image": "ray"}]}
        body = {"metadata": {"name": name, "labels": labels}, "spec": spec}
        self._plane.admin.post(f"/api/v1/namespaces/{self.watched}/pods", body)

    def note(self, name: str, namespace: str) -> dict[str, Any] | None:
        """The ConfigMap that the controller made, if it did."""
        path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        return self._plane.admin.get(path) if self._plane.admin.answers(path) else None

    def wait_for_note(self, name: str, pods: int) -> dict[str, Any]:
        def noted() -> dict[str, Any] | None:
            note = self.note(name, self.watched)
            return note if note and note["metadata"]["labels"]["pods"] == str(pods) else None

        note = wait_until(f"{name} is noted with {pods} pods", noted)
        assert note is not None
        return note

    def delete_note(self, name: str) -> None:
        self._plane.admin.delete(f"/api/v1/namespaces/{self.watched}/configmaps/{name}")

    def set_status(self, name: str, status: dict[str, Any]) -> None:
        path = f"/apis/ray.io/v1/namespaces/{self.watched}/rayclusters/{name}/status"
        self._plane.admin.patch(path, {"status": status})

    def annotate(self, name: str) -> None:
        path = f"/apis/ray.io/v1/namespaces/{self.watched}/rayclusters/{name}"
        self._plane.admin.patch(path, {"metadata": {"annotations": {"a": "b"}}})

    def events(self, name: str) -> list[dict[str, Any]]:
        path = f"/apis/events.k8s.io/v1/namespaces/{self.watched}/events?fieldSelector=regarding.name={name}"
        return list(self._plane.admin.get(path)["items"])


@pytest.fixture
def world(ray_crds: ControlPlane, namespace: str) -> Iterator[World]:
    other = f"other-{uuid.uuid4().hex[:8]}"
    make_namespace(ray_crds, other)
    yield World(ray_crds, namespace, other)
    remove_namespace(ray_crds, other)


@pytest.fixture
def operators(ray_crds: ControlPlane, tmp_path: Path) -> Iterator[Operators]:
    with operators_of(ray_crds, tmp_path) as operators:
        yield operators


@pytest.fixture
def operator(operators: Operators, world: World) -> OperatorProcess:
    """It watches one namespace only: other tests run beside this one."""
    place = (f"--watch-namespace={world.watched}", f"--leader-election-namespace={world.watched}")
    operator = operators.start(*place, command=NOTING_OPERATOR)
    operator.wait_for("leading")
    return operator


def reconciles(operator: OperatorProcess) -> int:
    samples = operator.samples("controller_runtime_reconcile_total")
    return int(sum(sample.value for sample in samples if sample.labels["controller"] == "noting-controller"))


def test_a_new_object_is_reconciled_and_an_event_tells_so(operator: OperatorProcess, world: World) -> None:
    world.make_cluster("first", world.watched)
    world.wait_for_note("first", pods=0)
    [event] = wait_until("an event is written", lambda: world.events("first"))
    assert (event["reportingController"], event["reason"]) == ("noting-controller", "Noted")
    assert operator.ask("/healthz?verbose")[1].startswith("[+]noting-controller ok")


def test_what_a_controller_owns_brings_its_owner_back(operator: OperatorProcess, world: World) -> None:
    world.make_cluster("first", world.watched)
    first = world.wait_for_note("first", pods=0)
    world.delete_note("first")
    assert world.wait_for_note("first", pods=0)["metadata"]["uid"] != first["metadata"]["uid"]


def test_only_ray_pods_are_watched_and_they_bring_their_cluster_back(operator: OperatorProcess, world: World) -> None:
    world.make_cluster("first", world.watched)
    world.make_pod("stranger", {"ray.io/cluster": "first"})
    world.make_pod("head", {"ray.io/cluster": "first", "ray.io/node-type": "head"})
    world.wait_for_note("first", pods=1)
    assert operator.metric("raykeeper_informer_objects", resource=f"pods {WATCHED_PODS.labels}") == 1


def test_nothing_happens_in_namespaces_that_are_not_watched(operator: OperatorProcess, world: World) -> None:
    world.make_cluster("foreign", world.other)
    world.make_cluster("ours", world.watched)
    world.wait_for_note("ours", pods=0)
    assert world.note("foreign", world.other) is None
    assert operator.metric("raykeeper_informer_objects", resource="rayclusters.ray.io") == 1


def test_a_status_alone_asks_for_no_reconcile(operator: OperatorProcess, world: World) -> None:
    world.make_cluster("first", world.watched)
    world.wait_for_note("first", pods=0)
    wait_until("the cluster and the note brought it", lambda: reconciles(operator) == 2)
    world.set_status("first", {"state": "ready"})
    world.annotate("first")
    wait_until("the annotation brings it back", lambda: reconciles(operator) > 2)
    assert reconciles(operator) == 3


def test_a_new_process_finds_everything_done_and_writes_nothing(
    operators: Operators, operator: OperatorProcess, world: World
) -> None:
    world.make_cluster("first", world.watched)
    before = world.wait_for_note("first", pods=0)
    wait_until("an event is written", lambda: world.events("first"))
    assert operator.stop() == 0
    place = (f"--watch-namespace={world.watched}", f"--leader-election-namespace={world.watched}")
    again = operators.start(*place, command=NOTING_OPERATOR)
    again.wait_for("leading")
    wait_until("it looked at the cluster", lambda: reconciles(again) >= 1)
    assert world.note("first", world.watched) == before
    assert len(world.events("first")) == 1
