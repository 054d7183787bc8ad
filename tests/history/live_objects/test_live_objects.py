"""Ray's objects that exist now: a real API server in which our operator works, read by the chart's rights alone."""

from __future__ import annotations

import msgspec
import pytest

from bed.control_plane import ControlPlane
from raykeeper.history.live_objects import kubernetes
from raykeeper.history.live_objects.kubernetes import BELIEVED_SECONDS, KubernetesObjects
from raykeeper.history.live_objects.model import LiveDetail, LiveKind, LiveProblem
from support.clocks import ManualClock
from support.conditions import eventually
from support.live_scene import SECRET, LiveScene, chart_rules
from support.operating import operating

NAMES: dict[LiveKind, str] = {
    "RayCluster": "train",
    "RayJob": "nightly",
    "RayService": "answers",
    "RayCronJob": "hourly",
}


@pytest.fixture
def scene(ray_crds: ControlPlane, namespace: str) -> LiveScene:
    return LiveScene(ray_crds, namespace)


async def detail_of(objects: KubernetesObjects, scene: LiveScene, kind: LiveKind, name: str) -> LiveDetail:
    found = await objects.find(kind, scene.namespace, name)
    assert isinstance(found, LiveDetail), found
    return found


async def test_objects_of_all_kinds_are_shown_with_pods_events_and_conditions_of_our_operator(scene: LiveScene) -> None:
    scene.make_all()
    clock = ManualClock()
    kubeconfig = scene.kubeconfig_with(chart_rules(), "viewer")
    async with operating(scene.plane.admin_kubeconfig, scene.namespace), scene.objects(kubeconfig, clock) as objects:

        async def has_pods() -> LiveDetail | None:
            clock.advance(BELIEVED_SECONDS)
            found = await detail_of(objects, scene, "RayCluster", NAMES["RayCluster"])
            return found if len(found.pods) == 2 and found.object.conditions and found.events else None

        cluster = await eventually(has_pods)
        assert cluster is not None
        assert [pod.role for pod in cluster.pods] == ["head", "worker"]
        assert {event.reason for event in cluster.events} >= {"CreatedHeadPod"}
        assert cluster.object.state in ("starting", "ready")  # its pods start at their own pace
        clock.advance(BELIEVED_SECONDS)
        listed = await objects.all()
        assert {(one.kind, one.name) for one in listed.objects} >= set(NAMES.items())
        assert (listed.is_complete, listed.problems) == (True, ())
        job = await detail_of(objects, scene, "RayJob", NAMES["RayJob"])
        assert job.object.clusters
        assert job.pods
        for one in (cluster, job, listed):
            assert SECRET not in msgspec.json.encode(one).decode()


async def test_a_pod_that_waits_says_why_with_its_restarts_and_events(scene: LiveScene) -> None:
    cluster = scene.make_cluster("broken")
    scene.make_pod(cluster, "broken-head", "head", scheduler="nobody")
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}}
    before = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    status = {"name": "ray", "image": "x", "imageID": "", "ready": False, "restartCount": 4}
    scene.patch_status(
        "broken-head", phase="Running", containerStatuses=[{**status, "state": waiting, "lastState": before}]
    )
    scene.tell({"kind": "Pod", "name": "broken-head"}, "BackOff", "Back-off restarting failed container")
    async with scene.objects() as objects:
        found = await detail_of(objects, scene, "RayCluster", "broken")
    [pod] = found.pods
    assert (pod.restarts, pod.is_well) == (4, False)
    assert "CrashLoopBackOff" in pod.words
    assert "OOMKilled" in pod.words
    assert [event.reason for event in found.events] == ["BackOff"]


async def test_a_missing_right_is_named_by_verb_resource_and_place(scene: LiveScene) -> None:
    scene.make_cluster("train")
    rules = [{"apiGroups": ["ray.io"], "resources": ["rayclusters"], "verbs": ["get", "list"]}]
    async with scene.objects(scene.kubeconfig_with(rules, "half")) as objects:
        listed = await objects.all()
        found = await detail_of(objects, scene, "RayCluster", "train")
        refused = await objects.find("RayJob", scene.namespace, "nightly")
    assert [one.name for one in listed.objects] == ["train"]
    assert not listed.is_complete
    missing = {(one.cause, one.verb, one.resource, one.namespace) for one in listed.problems}
    assert missing == {
        ("forbidden", "list", f"{plural}.ray.io", scene.namespace)
        for plural in ("rayjobs", "rayservices", "raycronjobs")
    }
    assert {(one.verb, one.resource) for one in found.problems} == {("list", "pods"), ("list", "events")}
    assert isinstance(refused, LiveProblem)
    assert (refused.verb, refused.resource) == ("get", "rayjobs.ray.io")


async def test_kubernetes_is_asked_once_in_a_few_seconds_and_the_answer_says_when(scene: LiveScene) -> None:
    clock = ManualClock()
    async with scene.objects(clock=clock) as objects:
        first = await objects.all()
        scene.make_cluster("later")
        assert await objects.all() is first
        clock.advance(BELIEVED_SECONDS)
        second = await objects.all()
    assert [one.name for one in second.objects] == ["later"]
    assert second.as_of > first.as_of


async def test_a_list_is_bounded_and_says_that_there_is_more(scene: LiveScene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes, "MOST_OBJECTS", 2)
    for name in ("a", "b", "c"):
        scene.make_cluster(name)
    async with scene.objects() as objects:
        listed = await objects.all()
    assert len(listed.objects) == 2
    assert not listed.is_complete


async def test_what_is_gone_or_elsewhere_is_not_found(scene: LiveScene) -> None:
    async with scene.objects() as objects:
        assert await objects.find("RayCluster", scene.namespace, "never") is None
        assert await objects.find("RayCluster", "kube-system", "any") is None
