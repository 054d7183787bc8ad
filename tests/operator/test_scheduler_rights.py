"""The rights that a batch scheduler adds to the operator's role, in one namespace: all are used, and none is missing.

The API server's audit log is witness.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.daemons import ControlPlaneSettings
from bed.fixtures import NewControlPlane, make_namespace
from bed.kwok import Kwok
from bed.schedulers import WORKLOAD_API, install_scheduler_crds, stand_in
from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.operator.schedulers import kubernetes_was, scheduler_plugins, volcano
from support.audit import AuditLog
from support.conditions import eventually
from support.kube_clients import connected
from support.operator_processes import Operators, operators_of
from support.operator_rights import OF_SCHEDULERS, RBAC, RULES, granted, rights
from support.raycluster_scene import Scene, a_group, a_raycluster

FLAGS: Final = {
    "volcano": "--batch-scheduler=volcano",
    "scheduler-plugins": "--batch-scheduler=scheduler-plugins",
    "kubernetes-was": "--feature-gates=KubernetesWAS=true",
}
OBJECTS: Final[dict[str, tuple[tuple[Resource[Any], str], ...]]] = {
    "volcano": ((volcano.POD_GROUPS, "ray-demo-pg"),),
    "scheduler-plugins": ((scheduler_plugins.POD_GROUPS, "demo"),),
    "kubernetes-was": ((kubernetes_was.WORKLOADS, "demo"), (kubernetes_was.POD_GROUPS, "demo-cluster")),
}
SECONDS: Final = 90.0


@dataclass(frozen=True)
class Stage:
    """An API server that writes down what the user does who has the name of a scheduler."""

    plane: ControlPlane
    logs: dict[str, AuditLog]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, new_control_plane: NewControlPlane) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("audit")
    logs = {name: AuditLog(folder, name) for name in FLAGS}
    flags = WORKLOAD_API.extra_flags
    audited = {**flags, "kube-apiserver": (*flags["kube-apiserver"], *logs["volcano"].flags(*FLAGS))}
    plane = new_control_plane(ControlPlaneSettings(extra_flags=audited))
    install_ray_crds(plane)
    install_scheduler_crds(plane)
    kwok, scheduler = Kwok(plane), stand_in(plane, folder)
    kwok.up(nodes=1)
    scheduler.start()
    yield Stage(plane, logs)
    scheduler.kill()
    kwok.down()


@pytest.fixture
def operators(stage: Stage, tmp_path: Path) -> Iterator[Operators]:
    with operators_of(stage.plane, tmp_path) as operators:
        yield operators


@pytest.fixture(params=FLAGS)
async def scene(request: pytest.FixtureRequest, stage: Stage) -> AsyncIterator[Scene]:
    """In a namespace that has the name of its scheduler."""
    make_namespace(stage.plane, request.param)
    async with connected(stage.plane.admin_kubeconfig) as kube:
        yield Scene(kube, request.param)


def grant(plane: ControlPlane, name: str) -> Path:
    """A kubeconfig of a user who has the operator's role, and in his namespace what his scheduler adds."""
    subject = {"kind": "User", "name": name}
    for collection, body in granted(name, RULES, subject):
        plane.admin.post(collection, body)
    metadata = {"name": "of-the-scheduler", "namespace": name}
    rules = [rule.to_json() for rule in OF_SCHEDULERS[name]]
    role = {"apiGroup": RBAC, "kind": "Role", "name": "of-the-scheduler"}
    collection = f"/apis/{RBAC}/v1/namespaces/{name}"
    plane.admin.post(f"{collection}/roles", {"metadata": metadata, "rules": rules})
    plane.admin.post(f"{collection}/rolebindings", {"metadata": metadata, "roleRef": role, "subjects": [subject]})
    plane.wait_for_right(name, "list", "rayclusters", "ray.io")
    for right in rights(OF_SCHEDULERS[name]):
        plane.wait_for_right(name, right.verb, right.kind, right.group, name)
    return plane.kubeconfig(name, groups=())


async def test_the_rights_of_a_scheduler_are_all_used_and_none_is_missing(
    stage: Stage, operators: Operators, scene: Scene
) -> None:
    name = scene.namespace
    access = grant(stage.plane, name)
    operators.start(
        "--enable-leader-election=false", f"--watch-namespace={name}", FLAGS[name], kubeconfig=access
    ).wait_ready()
    body = a_raycluster(a_group("small", 1))
    body["metadata"]["labels"] = {labels.GANG_SCHEDULING_ENABLED: "true"}
    await scene.apply(body)
    await scene.becomes("ready", SECONDS)
    for kind, item in OBJECTS[name]:
        await is_found_again(scene, kind.read_as(dict), ObjectKey(name, item))
    await scene.patch(workerGroupSpecs=[a_group("small", 2)])
    await scene.becomes("ready", SECONDS)
    log, has = stage.logs[name], rights(OF_SCHEDULERS[name])
    assert log.refused() == set()
    groups = {right.group for right in has}
    # What a watch begins with is streamed or listed, as the API server can.
    assert {right for right in has if right.verb != "list"} <= log.used()
    assert {right for right in log.used() if right.group in groups} <= has


async def is_found_again(scene: Scene, kind: Resource[JSON], key: ObjectKey) -> None:
    """Take all labels from an object, so that the operator sees it no more, makes it again and finds it there."""
    before = (await scene.kube.get(kind, key))["metadata"]["labels"]
    await scene.kube.merge_patch(kind, key, {"metadata": {"labels": dict.fromkeys(before)}})

    async def look() -> bool:
        return bool((await scene.kube.get(kind, key))["metadata"].get("labels") == before)

    await eventually(look, seconds=SECONDS)
