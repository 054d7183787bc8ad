"""Every verb of the client against the real API server."""

from __future__ import annotations

import contextlib

import msgspec
import pytest

from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.errors import Unavailable
from raykeeper.kube.client import Kube
from raykeeper.kube.discovery import Discovery
from raykeeper.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from raykeeper.kube.http.requests import Query
from raykeeper.kube.resources import CONFIG_MAPS, NAMESPACES, PODS, ROUTES, SERVICE_ACCOUNTS
from support.clocks import ManualClock


def a_config_map(name: str, namespace: str, **data: str) -> JSON:
    return {"metadata": {"name": name, "namespace": namespace, "labels": {"kind": "colours"}}, "data": data}


def a_pod(name: str, namespace: str) -> JSON:
    """It stays Pending, also where another test has brought nodes: its scheduler is not there."""
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "ray", "image": "rayproject/ray:2.60.0"}]},
    }


@pytest.fixture
async def colours(kube: Kube, namespace: str) -> ObjectKey:
    """A ConfigMap that says what colour the sky has."""
    await kube.create(CONFIG_MAPS, a_config_map("colours", namespace, sky="blue"))
    return ObjectKey(namespace, "colours")


async def test_an_object_is_created_read_and_deleted(kube: Kube, namespace: str) -> None:
    key = ObjectKey(namespace, "colours")
    created = await kube.create(CONFIG_MAPS, a_config_map(key.name, namespace, sky="blue"))
    assert created["data"] == {"sky": "blue"}
    assert (await kube.get(CONFIG_MAPS, key))["metadata"]["uid"] == created["metadata"]["uid"]
    await kube.delete(CONFIG_MAPS, key)
    assert await kube.find(CONFIG_MAPS, key) is None
    with pytest.raises(NotFound, match=f'get configmaps {key}: 404 NotFound: configmaps "colours" not found'):
        await kube.get(CONFIG_MAPS, key)


async def test_a_second_create_of_the_same_name_already_exists(kube: Kube, colours: ObjectKey) -> None:
    with pytest.raises(AlreadyExists, match=f"create configmaps {colours}: 409 AlreadyExists"):
        await kube.create(CONFIG_MAPS, a_config_map(colours.name, colours.namespace))


async def test_a_struct_leaves_spec_and_status_as_bytes(kube: Kube, namespace: str) -> None:
    pod = await kube.create(PODS, a_pod("head", namespace))
    assert pod.key == ObjectKey(namespace, "head")
    assert msgspec.json.decode(pod.spec)["containers"][0]["name"] == "ray"
    assert msgspec.json.decode(pod.status)["phase"] == "Pending"


async def test_a_cluster_scoped_object_is_read_without_a_namespace(kube: Kube, namespace: str) -> None:
    assert (await kube.get(NAMESPACES, ObjectKey("", namespace))).metadata.name == namespace


async def test_managed_fields_are_never_kept(kube: Kube, colours: ObjectKey) -> None:
    assert "managedFields" not in (await kube.get(CONFIG_MAPS, colours))["metadata"]
    page = await kube.page(CONFIG_MAPS, colours.namespace)
    assert not any("managedFields" in item["metadata"] for item in page.items)


async def test_a_dry_run_changes_nothing(kube: Kube, namespace: str) -> None:
    await kube.create(CONFIG_MAPS, a_config_map("never", namespace), dry_run=True)
    assert await kube.find(CONFIG_MAPS, ObjectKey(namespace, "never")) is None


async def test_an_object_the_schema_refuses_is_invalid(kube: Kube, namespace: str) -> None:
    with pytest.raises(Invalid, match="422 Invalid"):
        await kube.create(PODS, {"metadata": {"name": "x", "namespace": namespace}, "spec": {"containers": []}})


async def test_a_list_comes_in_pages_of_one_consistent_state(kube: Kube, namespace: str) -> None:
    names = [f"map-{number}" for number in range(5)]
    for name in names:
        await kube.create(CONFIG_MAPS, a_config_map(name, namespace))
    pages = [page async for page in kube.pages(CONFIG_MAPS, namespace, labels={"kind": "colours"}, limit=2)]
    assert [len(page.items) for page in pages] == [2, 2, 1]
    assert [item["metadata"]["name"] for page in pages for item in page.items] == names
    assert len({page.resource_version for page in pages}) == 1
    assert [page.token == "" for page in pages] == [False, False, True]


async def test_a_list_is_narrowed_by_labels_and_fields(kube: Kube, colours: ObjectKey) -> None:
    await kube.create(CONFIG_MAPS, {"metadata": {"name": "other", "namespace": colours.namespace}})
    by_label = await kube.list(CONFIG_MAPS, colours.namespace, labels={"kind": "colours"})
    by_field = await kube.list(CONFIG_MAPS, colours.namespace, fields="metadata.name=other")
    everywhere = await kube.list(CONFIG_MAPS, labels="kind=colours")
    assert [item["metadata"]["name"] for item in by_label] == ["colours"]
    assert [item["metadata"]["name"] for item in by_field] == ["other"]
    assert by_label[0] in everywhere


async def test_a_replace_of_an_older_version_conflicts(kube: Kube, colours: ObjectKey) -> None:
    old = await kube.get(CONFIG_MAPS, colours)
    changed = await kube.replace(CONFIG_MAPS, {**old, "data": {"sky": "grey"}})
    assert changed["data"] == {"sky": "grey"}
    with pytest.raises(Conflict, match=f"replace configmaps {colours}: 409 Conflict"):
        await kube.replace(CONFIG_MAPS, {**old, "data": {"sky": "red"}})


async def test_a_merge_patch_sets_and_removes_fields(kube: Kube, colours: ObjectKey) -> None:
    patched = await kube.merge_patch(CONFIG_MAPS, colours, {"data": {"sky": None, "sea": "green"}})
    assert patched["data"] == {"sea": "green"}


async def test_a_merge_patch_with_a_version_is_conditional(kube: Kube, colours: ObjectKey) -> None:
    with pytest.raises(Conflict):
        await kube.merge_patch(CONFIG_MAPS, colours, {"metadata": {"resourceVersion": "1"}, "data": {"sky": "red"}})


async def test_a_json_patch_applies_all_operations_or_none(kube: Kube, colours: ObjectKey) -> None:
    add: JSON = {"op": "add", "path": "/data/sea", "value": "green"}
    assert (await kube.json_patch(CONFIG_MAPS, colours, [add]))["data"] == {"sky": "blue", "sea": "green"}
    test: JSON = {"op": "test", "path": "/data/sky", "value": "red"}
    with pytest.raises(Invalid):
        await kube.json_patch(CONFIG_MAPS, colours, [{**add, "value": "black"}, test])
    assert (await kube.get(CONFIG_MAPS, colours))["data"]["sea"] == "green"


async def test_a_status_is_patched_apart_from_the_spec(kube: Kube, namespace: str) -> None:
    await kube.create(PODS, a_pod("head", namespace))
    key, patch = ObjectKey(namespace, "head"), {"status": {"phase": "Running"}}
    untouched = await kube.merge_patch(PODS, key, patch)
    assert msgspec.json.decode(untouched.status)["phase"] == "Pending"
    patched = await kube.merge_patch(PODS, key, patch, subresource="status")
    assert msgspec.json.decode(patched.status)["phase"] == "Running"


async def test_apply_creates_updates_and_respects_other_owners(kube: Kube, namespace: str) -> None:
    applied = await kube.apply(CONFIG_MAPS, a_config_map("a", namespace, sky="blue"), field_manager="morning")
    assert applied["data"] == {"sky": "blue"}
    evening = a_config_map("a", namespace, sky="red")
    with pytest.raises(Conflict, match='conflict with "morning"'):
        await kube.apply(CONFIG_MAPS, evening, field_manager="evening")
    forced = await kube.apply(CONFIG_MAPS, evening, field_manager="evening", force=True)
    assert forced["data"] == {"sky": "red"}


async def test_a_delete_meant_for_another_uid_does_nothing(kube: Kube, colours: ObjectKey) -> None:
    with pytest.raises(Conflict):
        await kube.delete(CONFIG_MAPS, colours, uid="00000000-0000-0000-0000-000000000000")
    found = await kube.get(CONFIG_MAPS, colours)
    with pytest.raises(Conflict):
        await kube.delete(CONFIG_MAPS, colours, resource_version="1")
    await kube.delete(CONFIG_MAPS, colours, uid=found["metadata"]["uid"])
    assert await kube.find(CONFIG_MAPS, colours) is None


async def test_a_foreground_delete_leaves_the_object_waiting_for_its_children(kube: Kube, colours: ObjectKey) -> None:
    uid = (await kube.get(CONFIG_MAPS, colours))["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": colours.name, "uid": uid, "blockOwnerDeletion": True}
    child = a_config_map("child", colours.namespace)
    child["metadata"] |= {"ownerReferences": [owner], "finalizers": ["raykeeper.io/test"]}
    await kube.create(CONFIG_MAPS, child)
    await kube.delete(CONFIG_MAPS, colours, propagation="Foreground")
    assert (await kube.get(CONFIG_MAPS, colours))["metadata"]["finalizers"] == ["foregroundDeletion"]
    await kube.merge_patch(CONFIG_MAPS, ObjectKey(colours.namespace, "child"), {"metadata": {"finalizers": None}})


async def test_a_collection_is_deleted_by_label(kube: Kube, colours: ObjectKey) -> None:
    await kube.create(CONFIG_MAPS, {"metadata": {"name": "other", "namespace": colours.namespace}})
    await kube.delete_collection(CONFIG_MAPS, colours.namespace, labels={"kind": "colours"})
    names = {item["metadata"]["name"] for item in await kube.list(CONFIG_MAPS, colours.namespace)}
    assert "colours" not in names
    assert "other" in names


async def test_a_token_is_made_through_its_subresource(kube: Kube, namespace: str) -> None:
    body: JSON = {"spec": {"expirationSeconds": 600}}
    answer = await kube.subresource(SERVICE_ACCOUNTS, ObjectKey(namespace, "default"), "token", body=body)
    assert msgspec.json.decode(answer)["status"]["token"].count(".") == 2


async def test_a_watch_streams_changes_until_the_server_ends_it(kube: Kube, colours: ObjectKey) -> None:
    path = CONFIG_MAPS.path(colours.namespace)
    params: Query = {"watch": True, "fieldSelector": "metadata.name=colours", "timeoutSeconds": 1}
    received = b"".join([chunk async for chunk in kube.stream(path, params, silence=10)])
    assert msgspec.json.decode(received.splitlines()[0])["type"] == "ADDED"


async def test_a_silent_stream_is_unavailable(kube: Kube, namespace: str) -> None:
    params: Query = {"watch": True, "fieldSelector": "metadata.name=nothing"}
    with pytest.raises(Unavailable, match=r"stream /api/v1/namespaces/.*: no answer in 0.2 s"):
        async for _ in kube.stream(CONFIG_MAPS.path(namespace), params, silence=0.2):
            pass


async def test_a_stream_that_is_left_early_frees_its_connection(kube: Kube, namespace: str) -> None:
    for _ in range(3):
        stream = kube.stream(CONFIG_MAPS.path(namespace), {"watch": True}, silence=10)
        async with contextlib.aclosing(stream):
            assert await anext(stream) == b""


async def test_discovery_knows_the_version_and_what_is_served(kube: Kube) -> None:
    discovery = Discovery(kube, ManualClock())
    assert (await discovery.server_version()).number >= (1, 36)
    assert "apps" in await discovery.groups()
    assert await discovery.serves(PODS)
    assert not await discovery.serves(ROUTES)
    pods_log = next(item for item in await discovery.resources("", "v1") if item.name == "pods/log")
    assert pods_log.verbs == ("get",)
