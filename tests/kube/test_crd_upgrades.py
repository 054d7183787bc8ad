"""CRDs are upgraded, never deleted, and never made to lose what is stored."""

from __future__ import annotations

import asyncio
import copy
import subprocess
import sys
from typing import Any

import pytest
import yaml

from bed.control_plane import ControlPlane
from raykeeper.api.crd.files import find_crd_files
from raykeeper.api.crd.upgrade import lost_fields, lost_versions
from raykeeper.api.meta import ObjectKey
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.kube.crds import CRDS, DowngradeRefused, apply_crds
from support.kube_clients import connected
from support.raycluster_scene import a_raycluster

Json = dict[str, Any]


def ray_cluster_definition() -> Json:
    (file,) = find_crd_files(["raycluster"])
    return dict(yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader))


def small_definition(*fields: str, plural: str = "things") -> Json:
    """A CRD of ours whose spec has these fields."""
    properties = {name: {"type": "string"} for name in fields}
    spec = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": spec}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.test.raykeeper.io"},
        "spec": {
            "group": "test.raykeeper.io",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": plural[:-1], "kind": plural.title()},
            "versions": [version],
        },
    }


def test_a_definition_loses_nothing_to_itself() -> None:
    definition = ray_cluster_definition()
    assert lost_fields(definition, definition) == []


def test_a_missing_field_is_named_at_any_depth() -> None:
    old = ray_cluster_definition()
    new = copy.deepcopy(old)
    spec = new["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    del spec["suspend"]
    del spec["workerGroupSpecs"]["items"]["properties"]["template"]["properties"]["spec"]["properties"]["hostIPC"]
    assert lost_fields(old, new) == ["spec.workerGroupSpecs.template.spec.hostIPC", "spec.suspend"]


def test_a_place_that_keeps_anything_loses_nothing() -> None:
    old, new = small_definition("a", "b"), small_definition()
    place = new["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    place["x-kubernetes-preserve-unknown-fields"] = True
    assert lost_fields(old, new) == []


def test_a_field_that_kubernetes_took_back_does_not_stop_the_move_from_kuberay() -> None:
    assert lost_fields(small_definition("a", "workloadRef"), small_definition("a")) == []


def test_a_stored_version_that_is_gone_is_named() -> None:
    old = small_definition() | {"status": {"storedVersions": ["v1alpha1", "v1"]}}
    assert lost_versions(old, small_definition()) == ["v1alpha1"]


async def test_a_definition_is_made_then_upgraded_but_not_set_back(control_plane: ControlPlane) -> None:
    key = ObjectKey("", small_definition()["metadata"]["name"])
    async with connected(control_plane.admin_kubeconfig) as kube:
        await apply_crds(kube, [small_definition("a")])
        await apply_crds(kube, [small_definition("a", "b")])
        with pytest.raises(DowngradeRefused, match=r"stored objects would lose spec\.b; use a newer raykeeper"):
            await apply_crds(kube, [small_definition("a")])
        assert lost_fields(small_definition("a", "b"), await kube.get(CRDS, key)) == []
        await apply_crds(kube, [small_definition("a")], force=True)
        assert lost_fields(small_definition("a", "b"), await kube.get(CRDS, key)) == ["spec.b"]
        await kube.delete(CRDS, key)


def run_crds(plane: ControlPlane, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "raykeeper.cli.main", "crds", *arguments]
    access = f"--kubeconfig={plane.admin_kubeconfig}"
    return subprocess.run([*command, access], capture_output=True, text=True, check=False)


def test_the_command_upgrades_the_definitions_of_a_cluster(ray_crds: ControlPlane) -> None:
    done = run_crds(ray_crds, "--apply")
    assert done.returncode == 0, done.stderr
    assert "applied: rayclusters, raycronjobs, rayjobs, rayservices" in done.stdout


async def test_the_command_says_what_would_be_lost_and_that_trying_again_does_not_help(
    own_control_plane: ControlPlane,
) -> None:
    newer = ray_cluster_definition()
    spec = newer["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    spec["ofTheFuture"] = {"type": "string"}
    async with connected(own_control_plane.admin_kubeconfig) as kube:
        await apply_crds(kube, [newer])
    done = await asyncio.to_thread(run_crds, own_control_plane, "--apply")
    assert done.returncode == 2
    assert "rayclusters.ray.io in the cluster is newer: stored objects would lose spec.ofTheFuture" in done.stderr


async def test_definitions_are_deleted_with_their_objects_only_when_told_so(own_control_plane: ControlPlane) -> None:
    assert (await asyncio.to_thread(run_crds, own_control_plane, "--apply", "--force")).returncode == 0
    async with connected(own_control_plane.admin_kubeconfig) as kube:
        await kube.create(RAY_CLUSTERS.read_as(dict), a_raycluster(), "default")
        done = await asyncio.to_thread(run_crds, own_control_plane, "--delete", "rayjob")
        assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "deleted: rayjobs")
        assert await kube.list(RAY_CLUSTERS.read_as(dict), "default")
        done = await asyncio.to_thread(run_crds, own_control_plane, "--delete")
        assert (done.returncode, done.stdout.splitlines()[-1]) == (
            0,
            "deleted: raycronjobs, rayjobs, rayservices, rayclusters",
        )
        names = [crd["metadata"]["name"] for crd in await kube.list(CRDS)]
        assert not [name for name in names if name.endswith(".ray.io")]
        again = await asyncio.to_thread(run_crds, own_control_plane, "--delete")
        assert again.returncode == 0


def test_nobody_deletes_and_applies_at_once(control_plane: ControlPlane) -> None:
    done = run_crds(control_plane, "--delete", "--apply")
    assert done.returncode == 2
    assert "--delete=True cannot be used: leave it or --apply out" in done.stderr
