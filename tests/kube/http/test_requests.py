"""URLs and bodies, without a server."""

from __future__ import annotations

from urllib.parse import parse_qs

import msgspec
import pytest

from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.kube.http import requests
from raykeeper.kube.proxied import Backend
from raykeeper.kube.resources import CONFIG_MAPS, NODES, PODS, SERVICE_ACCOUNTS

HEAD = ObjectKey("ray", "head")


def test_an_object_is_read_at_its_own_path() -> None:
    assert requests.read_one(PODS, HEAD).path == "/api/v1/namespaces/ray/pods/head"
    assert requests.read_one(NODES, ObjectKey("", "n1")).path == "/api/v1/nodes/n1"


def test_a_list_carries_selectors_limit_and_version_in_its_query() -> None:
    labels = {"ray.io/cluster": "a", "x": ""}
    request = requests.read_page(
        PODS, None, labels=labels, fields="spec.nodeName=n1", limit=2, token=None, resource_version="0"
    )
    path, _, query = request.path.partition("?")
    assert path == "/api/v1/pods"
    assert parse_qs(query) == {
        "labelSelector": ["ray.io/cluster=a,x="],
        "fieldSelector": ["spec.nodeName=n1"],
        "limit": ["2"],
        "resourceVersion": ["0"],
    }
    assert request.about == "list pods in all namespaces"


def test_a_following_page_names_no_version_because_its_token_has_one() -> None:
    request = requests.read_page(PODS, "ray", labels=None, fields=None, limit=2, token="abc", resource_version="7")
    assert request.path == "/api/v1/namespaces/ray/pods?limit=2&continue=abc"


def test_an_object_is_created_in_the_namespace_it_names() -> None:
    body: JSON = {"metadata": {"generateName": "worker-", "namespace": "ray"}}
    request = requests.create(PODS, body, None, requests.write_query(dry_run=True, field_manager="me"))
    assert request.method == "POST"
    assert request.path == "/api/v1/namespaces/ray/pods?dryRun=All&fieldManager=me"
    assert request.about == "create pods ray/worker-"


def test_an_apply_says_what_kind_it_is() -> None:
    body: JSON = {"metadata": {"name": "a", "namespace": "ray"}, "data": {}}
    request = requests.apply(CONFIG_MAPS, body, None, {"fieldManager": "me", "force": True})
    assert request.path.endswith("?fieldManager=me&force=true")
    assert request.content_type == "application/apply-patch+yaml"
    assert request.body is not None
    assert msgspec.json.decode(request.body) == {"apiVersion": "v1", "kind": "ConfigMap", **body}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, {}),
        ({"uid": "u"}, {"preconditions": {"uid": "u"}}),
        ({"uid": "u", "resource_version": "3"}, {"preconditions": {"uid": "u", "resourceVersion": "3"}}),
        ({"propagation": "Orphan"}, {"propagationPolicy": "Orphan"}),
        ({"grace_seconds": 0}, {"gracePeriodSeconds": 0}),
    ],
)
def test_delete_options_say_only_what_was_asked(arguments: JSON, expected: JSON) -> None:
    assert requests.delete_options(**arguments) == {"apiVersion": "v1", "kind": "DeleteOptions", **expected}


def test_every_write_has_a_body_for_the_fence_to_stand_before() -> None:
    body: JSON = {"metadata": {"name": "a", "namespace": "b"}}
    writes = [
        requests.create(PODS, body, None, {}),
        requests.replace(PODS, body, "status", {}),
        requests.merge_patch(PODS, HEAD, {}, None, {}),
        requests.json_patch(PODS, HEAD, [], None, {}),
        requests.apply(PODS, body, None, {}),
        requests.delete(PODS, HEAD, requests.delete_options()),
        requests.delete_collection(PODS, "ray", None, None, requests.delete_options()),
        requests.subresource(PODS, HEAD, "eviction", {}, {}),
    ]
    assert all(request.is_write and request.body for request in writes)


def test_a_subresource_is_read_without_a_body_and_created_with_one() -> None:
    assert requests.subresource(PODS, HEAD, "log", None, {"tailLines": 5}).path.endswith("/pods/head/log?tailLines=5")
    request = requests.subresource(SERVICE_ACCOUNTS, HEAD, "token", {}, {})
    assert (request.method, request.about) == ("POST", "create serviceaccounts/token ray/head")


@pytest.mark.parametrize(
    ("backend", "path", "expected"),
    [
        (Backend("services", HEAD, 8265), "/api/jobs/", "services/head:8265/proxy/api/jobs/"),
        (Backend("services", HEAD, "dashboard"), "/", "services/head:dashboard/proxy/"),
        (Backend("pods", HEAD, 8443, "https"), "/a b?c", "pods/https:head:8443/proxy/a%20b%3Fc"),
    ],
)
def test_a_backend_is_asked_below_the_proxy_of_its_object(backend: Backend, path: str, expected: str) -> None:
    assert backend.path(path) == f"/api/v1/namespaces/ray/{expected}"
