"""A reconcile may be stopped after every single write: the next process goes on, and the end is the same.

No pod is made twice on the way, and none is deleted that could have stayed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
import pytest_asyncio

from bed.control_plane import ControlPlane
from bed.kwok import Kwok
from rayclusters.histories import BY_ACK, ON_ACK
from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.kube.resources import INGRESSES
from raykeeper.operator.settings import OperatorSettings
from support.crashes import Story, play
from support.operating import Given, with_scheduler
from support.raycluster_scene import CLUSTERS, TEMPLATE, Scene, a_group, a_raycluster
from support.side_by_side import Told, selected, told

pytestmark = pytest.mark.timeout(1500)  # the first test plays all stories
AT_ONCE = 4
"""Stories that are played side by side."""

OTHER_TEMPLATE: JSON = {"spec": {"containers": [{"name": "ray", "image": "rayproject/ray:2.61.0"}]}}
REDIS: JSON = {"gcsFaultToleranceOptions": {"redisAddress": "redis:6379"}}
WITH_ALL_CHILDREN = a_raycluster(
    a_group("small", 1),
    a_group("tpu", 1, numOfHosts=2),
    headGroupSpec={"template": TEMPLATE, "enableIngress": True},
    enableInTreeAutoscaling=True,
    authOptions={"mode": "token"},
)
"""Rights for the autoscaler, an Ingress, a Secret, a head service and one for the hosts of a replica."""


def applied(body: JSON) -> Callable[[Scene], Awaitable[None]]:
    return lambda scene: scene.apply(body)


def patched(**spec: Any) -> Callable[[Scene], Awaitable[None]]:
    return lambda scene: scene.patch(**spec)


async def deleted(scene: Scene) -> None:
    await scene.kube.delete(CLUSTERS, scene.key)


async def is_ready(scene: Scene) -> bool:
    return await scene.is_now("ready")


async def is_suspended(scene: Scene) -> bool:
    return await scene.is_now("suspended")


async def is_gone(scene: Scene) -> bool:
    return await scene.kube.find(CLUSTERS, scene.key) is None


async def is_ready_without_ingress(scene: Scene) -> bool:
    ingress = await scene.kube.find(INGRESSES, ObjectKey(scene.namespace, "demo-head-ingress"))
    return ingress is None and await is_ready(scene)


async def is_collected(scene: Scene) -> bool:
    """Ready, and every pod has a collector."""
    pods = await scene.pods()
    return await is_ready(scene) and all("ray-history-collector" in str(pod["spec"]) for pod in pods)


SMALL = a_raycluster(a_group("small", 2))
A_GANG = a_raycluster(a_group())
A_GANG["metadata"]["labels"] = {labels.GANG_SCHEDULING_ENABLED: "true"}
REMEMBERED = a_raycluster(a_group("small", 1), enableInTreeAutoscaling=True)
REMEMBERED["metadata"]["annotations"] = BY_ACK
REMEMBERING = Given(settings=OperatorSettings(history=ON_ACK))
STORIES = {
    "a new cluster": Story(applied(a_raycluster(a_group("small", 3))), is_ready, made=4, gone=0),
    "a new cluster with all children": Story(applied(WITH_ALL_CHILDREN), is_ready, made=4, gone=0),
    "a new cluster with Redis": Story(applied(a_raycluster(a_group("small", 1), **REDIS)), is_ready, made=2, gone=0),
    "a new cluster with history": Story(applied(REMEMBERED), is_collected, made=2, gone=0, given=REMEMBERING),
    "scale up": Story(
        patched(workerGroupSpecs=[a_group("small", 4)]), is_ready, made=5, gone=0, before=a_raycluster(a_group())
    ),
    "scale down": Story(
        patched(workerGroupSpecs=[a_group("small", 1)]),
        is_ready,
        made=5,
        gone=3,
        before=a_raycluster(a_group("small", 4)),
    ),
    "another group": Story(patched(workerGroupSpecs=[a_group("large", 2)]), is_ready, made=5, gone=2, before=SMALL),
    "multi-host": Story(
        patched(workerGroupSpecs=[a_group("tpu", 2, numOfHosts=2)]), is_ready, made=5, gone=0, before=a_raycluster()
    ),
    "suspend": Story(patched(suspend=True), is_suspended, made=3, gone=3, before=SMALL),
    "resume": Story(
        patched(suspend=False),
        is_ready,
        made=3,
        gone=0,
        before=a_raycluster(a_group("small", 2), suspend=True),
        state_before="suspended",
    ),
    "recreate": Story(
        patched(headGroupSpec={"template": OTHER_TEMPLATE}),
        is_ready,
        made=6,
        gone=3,
        before=a_raycluster(a_group("small", 2), upgradeStrategy={"type": "Recreate"}),
    ),
    "ingress turned off": Story(
        patched(headGroupSpec={"enableIngress": False}),
        is_ready_without_ingress,
        made=4,
        gone=0,
        before=WITH_ALL_CHILDREN,
    ),
    "autoscaling turned off": Story(
        patched(suspend=False, enableInTreeAutoscaling=False),
        is_ready,
        made=4,
        gone=0,
        before=WITH_ALL_CHILDREN | {"spec": WITH_ALL_CHILDREN["spec"] | {"suspend": True}},
        state_before="suspended",
    ),
    "a new cluster with Volcano": Story(
        applied(a_raycluster(a_group("small", 3))), is_ready, made=4, gone=0, given=with_scheduler("volcano")
    ),
    "scale up with Volcano": Story(
        patched(workerGroupSpecs=[a_group("small", 4)]),
        is_ready,
        made=5,
        gone=0,
        before=a_raycluster(a_group()),
        given=with_scheduler("volcano"),
    ),
    "suspend with Volcano": Story(
        patched(suspend=True), is_suspended, made=3, gone=3, before=SMALL, given=with_scheduler("volcano")
    ),
    "resume with Volcano": Story(
        patched(suspend=False),
        is_ready,
        made=3,
        gone=0,
        before=SMALL | {"spec": SMALL["spec"] | {"suspend": True}},
        state_before="suspended",
        given=with_scheduler("volcano"),
    ),
    "scale up with scheduler-plugins": Story(
        patched(workerGroupSpecs=[a_group("small", 4)]),
        is_ready,
        made=5,
        gone=0,
        before=A_GANG,
        given=with_scheduler("scheduler-plugins"),
    ),
    "deletion with Redis": Story(
        deleted, is_gone, made=2, gone=2, before=a_raycluster(a_group("small", 1), **REDIS), jobs=1
    ),
}

WRITES = {
    # At least so many are seen to be interrupted; status writes come on top, and how many depends on the speed of pods.
    "a new cluster": 5,
    "a new cluster with all children": 11,
    "a new cluster with history": 8,
    "autoscaling turned off": 7,
    "a new cluster with Volcano": 6,
    "deletion with Redis": 3,
}


RARE = (
    "a new cluster with Redis",
    "multi-host",
    "ingress turned off",
    "scale up with Volcano",
    "suspend with Volcano",
    "resume with Volcano",
    "scale up with scheduler-plugins",
)
"""In `make soak`: variants of stories that are told in every run."""
NAMES = [pytest.param(name, marks=pytest.mark.soak) if name in RARE else name for name in STORIES]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def writes(
    request: pytest.FixtureRequest, ray_crds: ControlPlane, kwok: Kwok, scheduler_crds: object, pods_are_bound: object
) -> Told[int]:
    return await told({what: partial(play, ray_crds, STORIES[what]) for what in selected(request, "what")}, AT_ONCE)


@pytest.mark.parametrize("what", NAMES)
def test_the_end_is_the_same_wherever_it_was_interrupted(what: str, writes: Told[int]) -> None:
    assert writes[what] >= WRITES.get(what, 1), "the writes that the test is about were not made"
