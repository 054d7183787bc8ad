"""An informer's cache and handlers follow a real API server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from bed.control_plane import ControlPlane
from bed.waiting import PATIENCE_SECONDS
from raykeeper.api.meta import JSON, Object, ObjectKey, Resource
from raykeeper.backoff import Backoff
from raykeeper.kube.client import Kube
from raykeeper.kube.connect.connection import load_connection
from raykeeper.kube.informers.cache import by_label
from raykeeper.kube.informers.informer import Informer
from raykeeper.kube.informers.reflector import WatchSettings
from raykeeper.kube.metrics import KubeMetrics
from support.conditions import until

QUICK = WatchSettings(page_size=3, silence_seconds=30, backoff=Backoff(base=0.05, limit=0.5))


class ConfigMap(Object):
    """A kind whose content is not in spec and status."""

    data: msgspec.Raw = msgspec.Raw()


CONFIG_MAPS: Resource[ConfigMap] = Resource("", "v1", "configmaps", "ConfigMap", ConfigMap)


def a_config_map(name: str, value: str = "1", **labels: str) -> JSON:
    return {"metadata": {"name": name, "labels": {"test": "yes", **labels}}, "data": {"value": value}}


class Diary:
    """What handlers were told, in order, and the state that follows from it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.state: dict[ObjectKey, str] = {}

    def note(self, old: ConfigMap | None, new: ConfigMap | None) -> None:
        current = new or old
        assert current is not None
        verb = "gone" if new is None else "new" if old is None else "changed"
        self.lines.append(f"{verb} {current.metadata.name}")
        if new is None:
            del self.state[current.key]
        else:
            self.state[current.key] = new.metadata.uid


@contextlib.asynccontextmanager
async def kube_for(kubeconfig: Path) -> AsyncIterator[Kube]:
    async with Kube(await load_connection(kubeconfig), metrics=KubeMetrics(CollectorRegistry())) as kube:
        yield kube


@contextlib.asynccontextmanager
async def running(informer: Informer[ConfigMap], synced: bool = True) -> AsyncIterator[Informer[ConfigMap]]:
    task = asyncio.create_task(informer.run())
    try:
        if synced:
            await asyncio.wait_for(informer.wait_synced(), PATIENCE_SECONDS)
        yield informer
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def an_informer(kube: Kube, *namespaces: str, settings: WatchSettings = QUICK) -> Informer[ConfigMap]:
    return Informer(
        kube,
        CONFIG_MAPS,
        KubeMetrics(CollectorRegistry()),
        namespaces=namespaces,
        labels="test=yes",
        indexes={"colour": by_label("colour")},
        settings=settings,
    )


async def test_a_first_list_over_several_pages_fills_the_cache(control_plane: ControlPlane, namespace: str) -> None:
    async with kube_for(control_plane.admin_kubeconfig) as kube:
        for number in range(10):
            await kube.create(CONFIG_MAPS, a_config_map(f"map-{number}"), namespace)
        async with running(an_informer(kube, namespace)) as informer:
            assert len(informer.cache) == 10


async def test_handlers_hear_of_every_change_in_order(control_plane: ControlPlane, namespace: str) -> None:
    diary, key = Diary(), ObjectKey(namespace, "map")
    async with kube_for(control_plane.admin_kubeconfig) as kube:
        informer = an_informer(kube, namespace)
        informer.on_change(diary.note)
        async with running(informer):
            await kube.create(CONFIG_MAPS, a_config_map("map"), namespace)
            await kube.merge_patch(CONFIG_MAPS, key, {"data": {"value": "2"}})
            await kube.delete(CONFIG_MAPS, key)
            await until(lambda: len(diary.lines) == 3)
    assert diary.lines == ["new map", "changed map", "gone map"]


async def test_an_object_that_leaves_the_selection_is_gone(control_plane: ControlPlane, namespace: str) -> None:
    key = ObjectKey(namespace, "map")
    async with kube_for(control_plane.admin_kubeconfig) as kube:
        await kube.create(CONFIG_MAPS, a_config_map("map"), namespace)
        async with running(an_informer(kube, namespace)) as informer:
            assert key in informer.cache
            await kube.merge_patch(CONFIG_MAPS, key, {"metadata": {"labels": {"test": "no"}}})
            await until(lambda: key not in informer.cache)


async def test_an_index_follows_a_changed_label(control_plane: ControlPlane, namespace: str) -> None:
    async with kube_for(control_plane.admin_kubeconfig) as kube:
        await kube.create(CONFIG_MAPS, a_config_map("map", colour="red"), namespace)
        async with running(an_informer(kube, namespace)) as informer:
            assert [item.metadata.name for item in informer.cache.find("colour", f"{namespace}/red")] == ["map"]
            patch = {"metadata": {"labels": {"colour": "blue"}}}
            await kube.merge_patch(CONFIG_MAPS, ObjectKey(namespace, "map"), patch)
            await until(lambda: informer.cache.find("colour", f"{namespace}/blue"))
            assert informer.cache.find("colour", f"{namespace}/red") == []


async def test_several_namespaces_share_one_cache_and_others_stay_out(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with kube_for(control_plane.admin_kubeconfig) as kube:
        await kube.create(CONFIG_MAPS, a_config_map("here"), namespace)
        await kube.create(CONFIG_MAPS, a_config_map(f"there-{namespace}"), "default")
        async with running(an_informer(kube, namespace, "default", namespace)) as informer:
            assert {item.metadata.namespace for item in informer.cache} == {namespace, "default"}
        async with running(an_informer(kube, namespace)) as informer:
            assert {item.metadata.namespace for item in informer.cache} == {namespace}
        await kube.delete(CONFIG_MAPS, ObjectKey("default", f"there-{namespace}"))


async def test_a_broken_handler_stops_neither_the_others_nor_the_cache(
    control_plane: ControlPlane, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(old: ConfigMap | None, new: ConfigMap | None) -> None:
        raise ValueError("a bug")

    diary = Diary()
    async with kube_for(control_plane.admin_kubeconfig) as kube:
        informer = an_informer(kube, namespace)
        informer.on_change(broken)
        informer.on_change(diary.note)
        async with running(informer):
            await kube.create(CONFIG_MAPS, a_config_map("map"), namespace)
            await until(lambda: diary.lines == ["new map"])
    assert "informer handler failed" in caplog.text


async def test_a_refused_list_is_named_as_the_problem_and_ends_with_the_refusal(
    control_plane: ControlPlane, namespace: str
) -> None:
    nobody = control_plane.kubeconfig("nobody", groups=())
    role = {
        "metadata": {"name": "nobody"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}],
    }
    binding = {
        "metadata": {"name": "nobody"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "nobody"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}],
    }
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    async with kube_for(nobody) as kube, running(an_informer(kube, namespace), synced=False) as informer:
        await until(lambda: informer.problem)
        assert informer.problem is not None
        assert (
            f'list configmaps in {namespace}: 403 Forbidden: configmaps is forbidden: User "nobody"' in informer.problem
        )
        assert not informer.has_synced
        await asyncio.to_thread(control_plane.admin.post, f"{path}/roles", role)
        await asyncio.to_thread(control_plane.admin.post, f"{path}/rolebindings", binding)
        await until(lambda: informer.has_synced and informer.problem is None)
