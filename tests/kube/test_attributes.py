"""What a request asks for is read from its path as the API server reads it."""

from __future__ import annotations

import pytest

from raykeeper.kube.attributes import Attributes, attributes_of

RAY = {"group": "ray.io", "version": "v1"}
CORE = {"version": "v1"}


@pytest.mark.parametrize(
    ("method", "target", "expected"),
    [
        ("GET", "/apis/ray.io/v1/rayclusters", Attributes("list", **RAY, resource="rayclusters")),
        (
            "GET",
            "/apis/ray.io/v1/namespaces/team/rayclusters?limit=5",
            Attributes("list", **RAY, resource="rayclusters", namespace="team"),
        ),
        (
            "GET",
            "/apis/ray.io/v1/namespaces/team/rayclusters?watch=true",
            Attributes("watch", **RAY, resource="rayclusters", namespace="team"),
        ),
        (
            "GET",
            "/apis/ray.io/v1/namespaces/team/rayclusters?watch=0",
            Attributes("list", **RAY, resource="rayclusters", namespace="team"),
        ),
        (
            "GET",
            "/apis/ray.io/v1/namespaces/team/rayclusters?fieldSelector=metadata.name%3Da",
            Attributes("list", **RAY, resource="rayclusters", namespace="team", name="a"),
        ),
        (
            "GET",
            "/apis/ray.io/v1/namespaces/team/rayclusters/a",
            Attributes("get", **RAY, resource="rayclusters", namespace="team", name="a"),
        ),
        (
            "POST",
            "/apis/ray.io/v1/namespaces/team/rayclusters?fieldManager=x",
            Attributes("create", **RAY, resource="rayclusters", namespace="team"),
        ),
        (
            "PUT",
            "/apis/ray.io/v1/namespaces/team/rayservices/a",
            Attributes("update", **RAY, resource="rayservices", namespace="team", name="a"),
        ),
        (
            "PATCH",
            "/apis/ray.io/v1/namespaces/team/rayclusters/a/status",
            Attributes("patch", **RAY, resource="rayclusters", subresource="status", namespace="team", name="a"),
        ),
        (
            "DELETE",
            "/apis/ray.io/v1/namespaces/team/rayclusters/a",
            Attributes("delete", **RAY, resource="rayclusters", namespace="team", name="a"),
        ),
        (
            "DELETE",
            "/apis/ray.io/v1/namespaces/team/rayclusters",
            Attributes("deletecollection", **RAY, resource="rayclusters", namespace="team"),
        ),
        (
            "DELETE",
            "/apis/ray.io/v1/namespaces/team/rayclusters?fieldSelector=metadata.name%3Da",
            Attributes("deletecollection", **RAY, resource="rayclusters", namespace="team"),
        ),
        (
            "POST",
            "/api/v1/namespaces/team/services/head:dashboard/proxy/api/jobs/",
            Attributes(
                "create", **CORE, resource="services", subresource="proxy", namespace="team", name="head:dashboard"
            ),
        ),
        ("GET", "/api/v1/namespaces", Attributes("list", **CORE, resource="namespaces")),
        (
            "GET",
            "/api/v1/namespaces/team",
            Attributes("get", **CORE, resource="namespaces", namespace="team", name="team"),
        ),
        (
            "PUT",
            "/api/v1/namespaces/team/finalize",
            Attributes("update", **CORE, resource="namespaces", subresource="finalize", namespace="team", name="team"),
        ),
        ("GET", "/apis/ray.io/v1/watch/rayclusters", Attributes("watch", **RAY, resource="rayclusters")),
        (
            "GET",
            "/apis/ray.io/v1/watch/namespaces/team/rayclusters/a",
            Attributes("watch", **RAY, resource="rayclusters", namespace="team", name="a"),
        ),
        (
            "GET",
            "/apis/ray.io/v1/rayclusters/namespaces/team",
            Attributes("get", **RAY, resource="rayclusters", name="namespaces", subresource="team"),
        ),
        ("GET", "/version", Attributes("get", path="/version")),
        ("GET", "/apis/ray.io/v1", Attributes("get", path="/apis/ray.io/v1")),
    ],
)
def test_a_path_says_what_is_asked_for(method: str, target: str, expected: Attributes) -> None:
    assert attributes_of(method, target) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("watch=true&watch=false", Attributes("watch", **RAY, resource="rayclusters")),
        ("watch=false&watch=true", Attributes("list", **RAY, resource="rayclusters")),
        ("watch=%zz&limit=1", Attributes("list", **RAY, resource="rayclusters")),
        ("a=1;watch=true", Attributes("list", **RAY, resource="rayclusters")),
        (
            "fieldSelector=metadata.name%3Dtheirs&fieldSelector=metadata.name%3Dmine",
            Attributes("list", **RAY, resource="rayclusters", name="theirs"),
        ),
    ],
)
def test_of_parameters_that_repeat_the_first_counts_and_unreadable_ones_do_not(
    query: str, expected: Attributes
) -> None:
    """Otherwise a caller could be allowed one thing, and get another."""
    assert attributes_of("GET", f"/apis/ray.io/v1/rayclusters?{query}") == expected


def test_a_refusal_reads_as_kubernetes_own() -> None:
    here = attributes_of("GET", "/apis/ray.io/v1/namespaces/team/rayclusters")
    assert str(here) == 'list resource "rayclusters" in API group "ray.io" in the namespace "team"'
    proxied = attributes_of("GET", "/api/v1/services/a/proxy")
    assert str(proxied) == 'get resource "services/proxy" in API group "" at the cluster scope'
    assert str(attributes_of("GET", "/metrics")) == 'get path "/metrics"'
