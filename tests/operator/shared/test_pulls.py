"""When a registry's refusal counts as its last word."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from raykeeper.api.meta import JSON
from raykeeper.operator.shared.pulls import Answer, RefusedPulls, registry_answer

NOW = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)
RESOLVE = 'rpc error: code = Unknown desc = failed to pull and unpack image "{0}": failed to resolve reference "{0}": '
HEAD = "unexpected status from HEAD request to https://registry.example:5000/v2/team/ray/manifests/404: "
TIMEOUT = (
    "failed to do request: Head https://registry.example/v2/denied/manifests/401: dial tcp 10.1.2.3:443: i/o timeout"
)


def waits(reason: str, message: str, image: str = "registry.example/team/ray:1") -> JSON:
    return {"name": "ray", "image": image, "state": {"waiting": {"reason": reason, "message": message}}}


def a_pod(reason: str = "ErrImagePull", message: str = "401 Unauthorized", uid: str = "u") -> JSON:
    return {"metadata": {"name": "p", "uid": uid}, "status": {"containerStatuses": [waits(reason, message)]}}


def answer(message: str, image: str = "registry.example/team/ray:1") -> Answer:
    return registry_answer(waits("ErrImagePull", message, image))


@pytest.mark.parametrize(
    "message",
    [
        RESOLVE.format("registry.example/ray:1") + "registry.example/ray:1: not found",
        RESOLVE.format("registry.example/ray:1") + HEAD + "401 Unauthorized",
        RESOLVE.format("registry.example/ray:1") + HEAD + "403 Forbidden",
        "failed to resolve reference: pull access denied, repository does not exist or may require authorization: "
        "server message: insufficient_scope: authorization failed",
        "failed to authorize: failed to fetch oauth token: unexpected status: 401 Unauthorized",
        "Error response from daemon: manifest for ray:1 not found: manifest unknown: manifest unknown",
        "reading manifest 1 in registry.example/team/ray: manifest unknown",
        "reading manifest 1 in registry.example/team/ray: unauthorized: authentication required",
        "initializing source docker://registry.example/ray:1: requested access to the resource is denied",
        "StatusCode: 404, no such page",
    ],
)
def test_what_registries_say_when_they_refuse_an_image_is_known(message: str) -> None:
    assert answer(message) is Answer.REFUSED


@pytest.mark.parametrize(
    ("message", "image"),
    [
        ("{0}: dial tcp 10.1.2.3:443: i/o timeout", "registry.example/ray@sha256:9f404ab401"),
        ("{0}: dial tcp 10.1.2.3:443: i/o timeout", "registry.example:404/ray:401"),
        ("{0}: i/o timeout", "unauthorized:404"),
        ("reading manifest unauthorized in registry.example/ray: i/o timeout", "registry.example/ray:unauthorized"),
        (RESOLVE.format("registry.example/ray:404") + TIMEOUT, "registry.example/ray:404"),
        ("lookup denied.example on 10.96.0.10:53: no such host", "denied.example/ray:1"),
        ("429 Too Many Requests - Server message: toomanyrequests", "ray:1"),
        ("failed to extract layer: mkdir: permission denied", "ray:1"),
        ("lease does not exist: not found", "ray:1"),
    ],
)
def test_the_name_of_an_image_and_the_troubles_of_a_network_are_no_refusal(message: str, image: str) -> None:
    assert answer(message.format(image), image) is Answer.OTHER


def test_a_refusal_counts_after_five_minutes_however_old_the_pod_is() -> None:
    pulls = RefusedPulls()
    assert pulls.note("job", [a_pod()], NOW) == frozenset()
    assert pulls.note("job", [a_pod()], NOW + timedelta(seconds=299)) == frozenset()
    assert pulls.note("job", [a_pod()], NOW + timedelta(seconds=300)) == {("u", "ray")}


@pytest.mark.parametrize(
    ("between", "counts"),
    [
        (a_pod("ImagePullBackOff", 'Back-off pulling image "ray:1"'), True),
        (a_pod("ImagePullBackOff", 'Back-off pulling image "ray:1": ErrImagePull: 401 Unauthorized'), True),
        (a_pod("ContainerCreating", ""), True),
        (a_pod("ErrImagePull", "i/o timeout"), False),
        (a_pod(uid="another"), False),
        (
            {"metadata": {"uid": "u"}, "status": {"containerStatuses": [{"name": "ray", "state": {"running": {}}}]}},
            False,
        ),
    ],
)
def test_only_what_was_refused_all_the_time_counts(between: JSON, counts: bool) -> None:
    pulls = RefusedPulls()
    pulls.note("job", [a_pod()], NOW)
    pulls.note("job", [between], NOW + timedelta(minutes=4))
    assert bool(pulls.note("job", [a_pod()], NOW + timedelta(minutes=6))) is counts


def test_a_back_off_without_a_cause_is_no_refusal_by_itself() -> None:
    pulls, silent = RefusedPulls(), a_pod("ImagePullBackOff", 'Back-off pulling image "registry.example/ray:404"')
    pulls.note("job", [silent], NOW)
    assert pulls.note("job", [silent], NOW + timedelta(hours=1)) == frozenset()


def test_what_is_forgotten_counts_anew() -> None:
    pulls = RefusedPulls()
    pulls.note("job", [a_pod()], NOW)
    pulls.forget("job")
    assert pulls.note("job", [a_pod()], NOW + timedelta(hours=1)) == frozenset()
