"""One annotation, as Alibaba's documentation has it: the history of a cluster opens after the cluster is gone."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError

import pytest

from bed.crds import install_ray_crds
from bed.node.real_node import RealNode
from bed.rest import Refused
from bed.waiting import wait_until
from e2e.ack_installation import BUCKET, HOME, ROLE, TRUSTED, AckInstallation
from e2e.cluster import Namespace, a_pod, end_of, has_ended, is_running
from e2e.collected_scene import CollectedScene, PodBucket
from e2e.oss_on_minio import OssOnMinio
from e2e.ram_on_node import RamOnNode
from e2e.witness import Witness, assert_all_is_there, witness
from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.kube.resources import SERVICE_ACCOUNTS
from raykeeper.operator.raycluster.pods.node_id_hook import with_node_id_hook
from support.conditions import eventually
from support.kube_clients import connected
from support.login_providers import SECRET
from support.raycluster_scene import CLUSTERS

ID_FILE, LOG_FILE = "/tmp/ray/alibabacloud_raylet_node_id", "/tmp/ray/init.log"
NODE_ID = "ab" * 28
LATE_RAYLET = f"""
mkdir /tmp/bin
printf '#!/bin/sh\\nsleep 600\\n' > /tmp/bin/raylet
chmod +x /tmp/bin/raylet
sleep 3
/tmp/bin/raylet --node_id={NODE_ID} --store=x &
until grep -q {NODE_ID} {ID_FILE}; do sleep 0.2; done
cat {LOG_FILE}
"""
"""What the kernel calls a raylet, some time after the container has started."""
MINE = 'it\'s "kept": $(hostname -s | cut -c1-5) `echo ok`'


@pytest.fixture
def ack(node_with_own_image: RealNode, pod_bucket: PodBucket, tmp_path: Path) -> Iterator[AckInstallation]:
    """Both charts, on a bucket that only the documentation's role may use."""
    plane = node_with_own_image.plane
    install_ray_crds(plane)
    with OssOnMinio(plane, BUCKET, ROLE, TRUSTED, pod_bucket.settings) as oss, RamOnNode(tmp_path) as ram:
        made = AckInstallation(plane, oss, ram, tmp_path)
        made.install()
        yield made
        plane.kubectl("delete", "rayclusters", "--all", "--namespace=default", "--timeout=110s")
        made.uninstall()


async def test_the_documentations_cluster_is_remembered_by_one_annotation_and_a_hook_of_the_users_is_kept(
    ack: AckInstallation,
) -> None:
    name = await asyncio.to_thread(ack.create_cluster)
    hook = {"exec": {"command": ["/bin/bash", "-c", f'echo "{MINE}" > /tmp/ray/mine']}}
    hooked = await asyncio.to_thread(ack.create_cluster, lifecycle={"postStart": hook})
    async with connected(ack.plane.admin_kubeconfig) as kube:
        scene = CollectedScene(kube, ack.plane, "default", name)
        other = CollectedScene(kube, ack.plane, "default", hooked)
        await scene.turns("ready")
        await assert_pods_run_as_the_account_of_their_history(ack, scene)
        await assert_node_ids_are_written(ack, scene, 3)
        told = await witness(scene)
        await other.turns("ready")
        await assert_node_ids_are_written(ack, other, 1)
        await assert_hook_of_the_user_ran(ack, other)
        await delete_and_forget(scene)
    await asyncio.to_thread(assert_history_opens, ack, told)
    assert ack.oss.wire.refused == []
    clusters = {f"system:serviceaccount:default:ray-historyserver-{one}" for one in (name, hooked)}
    assert set(ack.oss.wire.assumed) == {*clusters, f"system:serviceaccount:{HOME}:ray-historyserver"}


async def assert_pods_run_as_the_account_of_their_history(ack: AckInstallation, scene: CollectedScene) -> None:
    account = f"ray-historyserver-{scene.key.name}"
    pods = await scene.pods()
    assert {pod["spec"]["serviceAccountName"] for pod in pods} == {account}
    found: JSON = await scene.kube.get(SERVICE_ACCOUNTS.read_as(dict), ObjectKey("default", account))
    assert found["metadata"]["annotations"]["pod-identity.alibabacloud.com/role-name"] == ROLE
    said = await scene.condition("HistoryCollected", "True")
    assert said["message"].endswith(f"http://localhost:{ack.port}/s/default/{scene.key.name}/latest/")


async def assert_node_ids_are_written(ack: AckInstallation, scene: CollectedScene, count: int) -> None:
    """In every pod the id of its own node, as Ray knows it, in the words of the documentation."""
    nodes = {node["raylet"]["nodeId"] for node in (await scene.ask("/nodes", view="summary"))["data"]["summary"]}
    found = set()
    for pod in await scene.pods():
        name, container = pod["metadata"]["name"], pod["spec"]["containers"][0]["name"]
        node_id = (await asyncio.to_thread(ack.read, name, container, ID_FILE)).strip()
        log = await asyncio.to_thread(ack.read, name, container, LOG_FILE)
        assert re.search(rf'raylet started: "{node_id}" => {node_id}\n$', log), log
        found.add(node_id)
    assert found == nodes
    assert len(nodes) == count


async def assert_hook_of_the_user_ran(ack: AckInstallation, scene: CollectedScene) -> None:
    (head,) = await scene.pods()
    written = await asyncio.to_thread(ack.read, head["metadata"]["name"], "ray-head", "/tmp/ray/mine")
    assert written == f"it's kept: {head['metadata']['name'][:5]} ok\n"


async def delete_and_forget(scene: CollectedScene) -> None:
    """Delete the cluster, and return once its pods and its account are gone."""
    ips = await scene.pod_ips()
    await scene.kube.delete(CLUSTERS, scene.key)
    await scene.is_silent(ips.values())
    account = ObjectKey("default", f"ray-historyserver-{scene.key.name}")

    async def is_gone() -> bool:
        return await scene.kube.find(SERVICE_ACCOUNTS, account) is None and not await scene.pods()

    await eventually(is_gone)


def assert_history_opens(ack: AckInstallation, told: Witness) -> None:
    with ack.opened() as history:
        assert_all_is_there(history, told)
        latest = f"/s/{told.session.namespace}/{told.session.cluster}/latest/"
        assert history.server.raw("GET", latest.replace("latest", told.session.session))
        with pytest.raises(Refused, match="401"):
            type(history.server)(history.server.server).raw("GET", latest)
        assert [asked["client_secret"] for asked in ack.ram.provider.asked] == [SECRET]
    ack.ram.provider.person["uid"] = "3000000000000003"
    with pytest.raises(HTTPError, match="403"), ack.opened():
        pass


@pytest.fixture
def pods(real_node: RealNode, node_namespace: str) -> Namespace:
    return Namespace(real_node.plane, node_namespace)


def with_hook(name: str, script: str, post_start: JSON | None = None) -> JSON:
    """A pod with Ray's folder and the hook, before one of the user's."""
    lifecycle = with_node_id_hook({"postStart": post_start} if post_start else None)
    mount = {"name": "ray", "mountPath": "/tmp/ray"}
    pod = a_pod(name, ["/bin/sh", "-c", script], lifecycle=lifecycle, volumeMounts=[mount])
    pod["spec"]["volumes"] = [{"name": "ray", "emptyDir": {}}]
    return pod


def test_the_kubelet_waits_neither_for_a_raylet_nor_for_what_waits_for_one(pods: Namespace) -> None:
    """Nothing of the hook that goes on keeps the container's start, or its end, from being told."""
    pods.create(with_hook("patient", "sleep 600"))
    pods.wait_for_pod("patient", is_running)
    said = pods.output_of(with_hook("late", LATE_RAYLET))
    assert "raylet not start\n" in said
    assert f'raylet started: "{NODE_ID}" => {NODE_ID}' in said


def test_a_users_hook_delays_and_fails_under_the_kubelet_as_it_did(pods: Namespace) -> None:
    pods.create(
        with_hook("failing", "sleep 600", {"exec": {"command": ["/bin/sh", "-c", "echo no such luck; exit 3"]}}),
        with_hook("pausing", "sleep 600", {"sleep": {"seconds": 2}}),
    )
    pods.wait_for_pod("pausing", is_running)
    wait_until("the kubelet tells of it", lambda: "FailedPostStartHook" in told_of(pods, "failing"))
    assert end_of(pods.wait_for_pod("failing", has_ended))["exitCode"] != 0
    assert "FailedPostStartHook" not in told_of(pods, "pausing")


def told_of(pods: Namespace, name: str) -> str:
    """Reasons and messages of the Events about a pod."""
    events = pods.plane.admin.get(f"/api/v1/namespaces/{pods.name}/events?fieldSelector=involvedObject.name={name}")
    return "\n".join(f"{event['reason']} {event['message']}" for event in events["items"])
