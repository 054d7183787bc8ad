"""What V2 passes on, and in which words."""

from __future__ import annotations

import pytest

from raykeeper.apiserver.v2.filter import Refused, passed, service_name
from raykeeper.web.targets import Target

RAY = "/apis/ray.io/v1"
SERVICE = "/api/v1/namespaces/team/services"


def sent(method: str, text: str) -> str | None:
    wanted = passed(method, Target.parse(text))
    return None if wanted is None else wanted.path


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
@pytest.mark.parametrize(
    "path",
    [
        RAY,
        f"{RAY}/rayclusters",
        f"{RAY}/namespaces/team/rayclusters",
        f"{RAY}/namespaces/team/rayclusters/a",
        f"{RAY}/namespaces/team/rayclusters/a/status",
        f"{RAY}/namespaces/team/raycronjobs/a",
        f"{RAY}/namespaces/team/rayjobs?watch=true&labelSelector=a%3Db&resourceVersion=5",
        f"{SERVICE}/head:dashboard/proxy/api/jobs/",
        f"{SERVICE}/http:head:8265/proxy",
        f"{SERVICE}/head/proxy/a%20b?c=d%2Fe",
    ],
)
def test_what_is_about_ray_is_passed_on_as_it_is(method: str, path: str) -> None:
    assert sent(method, path) == path


def test_events_are_those_about_ray_alone_whatever_else_is_selected() -> None:
    selector = "fieldSelector=involvedObject.apiVersion%3Dray.io%2Fv1"
    assert sent("GET", "/api/v1/namespaces/team/events") == f"/api/v1/namespaces/team/events?{selector}"
    assert sent("GET", "/apis/events.k8s.io/v1/namespaces/team/events?watch=1") == (
        "/apis/events.k8s.io/v1/namespaces/team/events?watch=1&fieldSelector=regarding.apiVersion%3Dray.io%2Fv1"
    )
    both = "reason%3DX%2Ctype%3DY%2CinvolvedObject.apiVersion%3Dray.io%2Fv1"
    given = "fieldSelector=reason%3DX&limit=1&fieldSelector=type%3DY"
    assert sent("GET", f"/api/v1/namespaces/team/events?{given}") == (
        f"/api/v1/namespaces/team/events?limit=1&fieldSelector={both}"
    )


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_events_are_only_read(method: str) -> None:
    assert sent(method, "/api/v1/namespaces/team/events") is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("head", "head"),
        ("head:8265", "head"),
        ("head:", "head"),
        ("http:head:8265", "head"),
        (":head:8265", "head"),
        ("https:head:", "head"),
        ("ftp:head:21", None),
        ("a:b:c:d", None),
        (":8265", None),
        ("http::8265", None),
    ],
)
def test_a_service_is_named_in_three_ways(text: str, name: str | None) -> None:
    assert service_name(text) == name


def test_templates_are_looked_for_in_whole_objects_of_a_namespace() -> None:
    def looks(path: str) -> bool:
        wanted = passed("POST", Target.parse(path))
        return wanted is not None and wanted.may_have_templates

    assert looks(f"{RAY}/namespaces/team/rayclusters")
    assert looks(f"{RAY}/namespaces/team/raycronjobs/a")
    assert not looks(f"{RAY}/namespaces/team/rayclusters/a/status")
    assert not looks(f"{RAY}/namespaces/team/others")
    assert not looks(f"{RAY}/rayclusters")
    assert not looks(f"{SERVICE}/head/proxy/x")


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "BREW", "get"])
def test_other_methods_are_refused(method: str) -> None:
    with pytest.raises(Refused) as refusal:
        sent(method, f"{RAY}/rayclusters")
    assert refusal.value.status == 405
