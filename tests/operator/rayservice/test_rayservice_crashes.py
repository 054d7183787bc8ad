"""Changes of a RayService, stopped after every single write of the operator and gone on with by the next one.

The end is the same, no cluster is made twice, and what serves goes on serving. The rarer changes are part of
`make soak`: all of them take minutes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import pytest

from bed.control_plane import ControlPlane
from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.operator.schedulers.volcano import POD_GROUPS
from support.operating import with_scheduler
from support.raycluster_scene import CLUSTERS, a_group
from support.rayservice_scene import ServiceScene, a_cluster_config, a_rayservice, a_serve_config, a_service_scene
from support.service_crashes import Portrait, Story, ends_of, writes_of

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("kwok", "scheduler_crds", "pods_are_bound")]
HEAD_ALONE: Final[JSON] = a_cluster_config() | {"workerGroupSpecs": []}
OTHER: Final[JSON] = a_cluster_config(image="rayproject/ray:2.61.0") | {"workerGroupSpecs": []}
THIRD: Final[JSON] = a_cluster_config(image="rayproject/ray:2.62.0") | {"workerGroupSpecs": []}
KUBERAYS: Final = {
    labels.KUBERAY_VERSION: "v1.6.2",
    labels.HASH_WITHOUT_REPLICAS: "anything",
    "raykeeper.io/serve-config": None,
}

Deed = Callable[[ServiceScene], Awaitable[None]]
Question = Callable[[ServiceScene], Awaitable[bool]]


def applied(annotations: dict[str, str] | None = None, **spec: Any) -> Deed:
    body = a_rayservice(annotations, rayClusterConfig=HEAD_ALONE, rayClusterDeletionDelaySeconds=0, **spec)
    return lambda scene: scene.apply(body)


def patched(**spec: Any) -> Deed:
    return lambda scene: scene.patch(**spec)


async def nothing(_scene: ServiceScene) -> None:
    """The operators change alone."""


async def serves(scene: ServiceScene, application: str = "shop", groups: int = 0) -> bool:
    """Whether all is settled: one cluster, which has the application, the label and the traffic."""
    status = await scene.status()
    active: JSON = status.get("activeServiceStatus", {})
    name, clusters = active.get("rayClusterName", ""), await scene.clusters()
    is_served = status.get("serviceStatus") == "Running" and not await scene.pending()
    if not is_served or set(clusters) != {name} or set(active.get("applicationStatuses", {})) != {application}:
        return False
    is_grown = len(clusters[name]["spec"].get("workerGroupSpecs") or ()) == groups
    is_ours = clusters[name]["metadata"]["annotations"][labels.KUBERAY_VERSION].startswith("raykeeper-")
    label = (await scene.head_pod(name))["metadata"]["labels"]["ray.io/serve"]
    is_pointed = await scene.selected() == name and await scene.selected("web-head-svc") == name
    return bool(label == "true") and is_pointed and is_grown and is_ours


async def has_suspended(scene: ServiceScene) -> bool:
    return (await scene.condition("Suspended")).get("status") == "True" and not await scene.clusters()


async def was_given_up(scene: ServiceScene) -> bool:
    return (await scene.condition("Ready")).get("reason") == "InitializingTimeout" and not await scene.clusters()


async def upgrades_in_vain(scene: ServiceScene) -> None:
    """The new cluster never gets to run its applications."""
    scene.heads.script["state"] = "DEPLOYING"
    await scene.patch(rayClusterConfig=OTHER)


async def is_deploying(scene: ServiceScene) -> bool:
    pending = (await scene.status()).get("pendingServiceStatus", {})
    states = [one["status"] for one in pending.get("applicationStatuses", {}).values()]
    return states == ["DEPLOYING"]


async def is_taken_over_from_kuberay(scene: ServiceScene) -> None:
    """Its clusters look as KubeRay leaves them."""
    for name in await scene.clusters():
        key = ObjectKey(scene.namespace, name)
        await scene.kube.merge_patch(CLUSTERS, key, {"metadata": {"annotations": KUBERAYS}})


async def is_taken_over_in_mid_upgrade(scene: ServiceScene) -> None:
    await is_taken_over_from_kuberay(scene)
    scene.heads.all_are("RUNNING")


async def gets_a_third_spec(scene: ServiceScene) -> None:
    scene.heads.script["state"] = "RUNNING"
    await scene.patch(rayClusterConfig=THIRD)


async def breaks(scene: ServiceScene) -> None:
    scene.head(await scene.active()).state = "UNHEALTHY"


async def loses_its_head(scene: ServiceScene) -> None:
    active = await scene.active()
    await scene.delete_head(active)
    scene.head(active).has_lost_all = True


async def has_its_config_again(scene: ServiceScene) -> bool:
    return len(scene.head(await scene.active()).configs) > 1 and await serves(scene)


async def begins_to_deploy(scene: ServiceScene) -> None:
    scene.heads.script["state"] = "DEPLOYING"
    await applied({"ray.io/initializing-timeout": "8s"})(scene)


async def watch_the_active(scene: ServiceScene) -> None:
    """The serve service leads to a cluster that is there, and that ran its applications before traffic came."""
    while True:
        name = await scene.selected()
        # Asked for after the service: a cluster may go once the service leads elsewhere.
        is_moved = await scene.selected() != name
        assert not name or is_moved or name in await scene.clusters(), name
        await asyncio.sleep(0.2)


async def has_one_gang(scene: ServiceScene) -> bool:
    """Whether all is settled, and the PodGroup of the cluster that serves is the only one."""
    if not await serves(scene, application="search"):
        return False
    groups = await scene.kube.list(POD_GROUPS.read_as(dict), scene.namespace)
    sizes = {group["metadata"]["name"]: group["spec"]["minMember"] for group in groups}
    return sizes == {f"ray-{await scene.active()}-pg": 1}


async def portrait(scene: ServiceScene) -> Portrait:
    conditions = (await scene.status())["conditions"]
    services = {name for name in await scene.services() if name in ("web-head-svc", "web-serve-svc")}
    return {"conditions": {(one["type"], one["status"], one["reason"]) for one in conditions}, "services": services}


def a_story(
    *before: tuple[Deed, Question], change: Deed, is_done: Question, clusters: int, **fields: Any
) -> Story[ServiceScene]:
    return Story(a_service_scene, before, change, is_done, clusters, portrait, **fields)


SERVED: Final = (applied(), serves)
HELD: Final = (upgrades_in_vain, is_deploying)
SEARCHES: Final = partial(serves, application="search")

STORIES: Final[dict[str, Story[ServiceScene]]] = {
    "start": a_story(change=applied(), is_done=serves, clusters=1),
    "upgrade": a_story(
        SERVED,
        change=patched(rayClusterConfig=OTHER, serveConfigV2=a_serve_config("search")),
        is_done=SEARCHES,
        clusters=2,
        watch=watch_the_active,
    ),
    "another config": a_story(
        SERVED, change=patched(serveConfigV2=a_serve_config("search")), is_done=SEARCHES, clusters=1
    ),
    "suspension": a_story(SERVED, change=patched(suspend=True), is_done=has_suspended, clusters=1),
    "take-over in mid-upgrade": a_story(
        SERVED, HELD, change=is_taken_over_in_mid_upgrade, is_done=serves, clusters=2, watch=watch_the_active
    ),
}
RARE: Final[dict[str, Story[ServiceScene]]] = {
    "resumption": a_story(
        SERVED, (patched(suspend=True), has_suspended), change=patched(suspend=False), is_done=serves, clusters=2
    ),
    "change that is taken back": a_story(
        SERVED, HELD, change=patched(rayClusterConfig=HEAD_ALONE), is_done=serves, clusters=2, watch=watch_the_active
    ),
    "third spec": a_story(SERVED, HELD, change=gets_a_third_spec, is_done=serves, clusters=3, watch=watch_the_active),
    "appended group": a_story(
        SERVED,
        change=patched(rayClusterConfig=HEAD_ALONE | {"workerGroupSpecs": [a_group()]}),
        is_done=partial(serves, groups=1),
        clusters=1,
    ),
    "upgrade with Volcano": a_story(
        SERVED,
        change=patched(rayClusterConfig=OTHER, serveConfigV2=a_serve_config("search")),
        is_done=has_one_gang,
        clusters=2,
        watch=watch_the_active,
        given=with_scheduler("volcano"),
    ),
    "take-over": a_story(SERVED, change=is_taken_over_from_kuberay, is_done=serves, clusters=1),
    "broken applications": a_story(
        (applied({"raykeeper.io/replace-unhealthy-after": "1s"}), serves), change=breaks, is_done=serves, clusters=2
    ),
    "lost head": a_story(SERVED, change=loses_its_head, is_done=has_its_config_again, clusters=1),
    "never served": a_story(change=begins_to_deploy, is_done=was_given_up, clusters=1),
}


@pytest.mark.parametrize("name", STORIES)
async def test_the_end_is_the_same_wherever_the_operator_was_stopped(name: str, ray_crds: ControlPlane) -> None:
    assert writes_of(await ends_of(ray_crds, STORIES[name])) >= 3, "the writes that the test is about were not made"


@pytest.mark.soak
@pytest.mark.parametrize("name", RARE)
async def test_the_end_of_a_rare_change_is_the_same_wherever_the_operator_was_stopped(
    name: str, ray_crds: ControlPlane
) -> None:
    assert writes_of(await ends_of(ray_crds, RARE[name])) >= 2, "the writes that the test is about were not made"
