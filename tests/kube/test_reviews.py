"""Whose a token is and what its owner may do: asked of the real API server, and remembered for seconds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bed.control_plane import ControlPlane
from raykeeper.errors import Unavailable
from raykeeper.kube.attributes import attributes_of
from raykeeper.kube.client import Kube
from raykeeper.kube.reviews import KEPT_SECONDS, MOST_KEPT, MOST_PENDING, AccessReviews, Remembered, TokenReviews, User
from support.clocks import ManualClock
from support.kube_clients import connected

LIST = "/apis/ray.io/v1/namespaces/{}/rayclusters"


@pytest.fixture
async def kube(control_plane: ControlPlane) -> AsyncIterator[Kube]:
    async with connected(control_plane.admin_kubeconfig) as kube:
        yield kube


def a_token(plane: ControlPlane, namespace: str, *audiences: str) -> str:
    spec = {"expirationSeconds": 600, **({"audiences": list(audiences)} if audiences else {})}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    token: str = plane.admin.post(path, {"spec": spec})["status"]["token"]
    return token


def allow(plane: ControlPlane, namespace: str, *verbs: str) -> None:
    roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rule = {"apiGroups": ["ray.io"], "resources": ["rayclusters"], "verbs": list(verbs)}
    plane.admin.post(f"{roles}/roles", {"metadata": {"name": "ray"}, "rules": [rule]})
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "ray"}
    plane.admin.post(f"{roles}/rolebindings", {"metadata": {"name": "ray"}, "subjects": [subject], "roleRef": role})


async def test_a_token_names_its_owner_and_groups(kube: Kube, control_plane: ControlPlane, namespace: str) -> None:
    verdict = await TokenReviews(kube, ManualClock()).review(a_token(control_plane, namespace))
    assert verdict.user is not None
    assert verdict.user.name == f"system:serviceaccount:{namespace}:default"
    assert f"system:serviceaccounts:{namespace}" in verdict.user.groups


@pytest.mark.parametrize("token", ["made-up", "a.b.c", "x" * 5000])
async def test_a_token_that_nobody_made_is_nobodys(kube: Kube, token: str) -> None:
    verdict = await TokenReviews(kube, ManualClock()).review(token)
    assert verdict.user is None
    assert verdict.problem == "the token is not accepted by Kubernetes"


async def test_a_token_for_another_audience_is_nobodys(kube: Kube, control_plane: ControlPlane, namespace: str) -> None:
    token = a_token(control_plane, namespace, "ray-api")
    assert (await TokenReviews(kube, ManualClock()).review(token)).user is None
    assert (await TokenReviews(kube, ManualClock(), ["ray-api", "other"]).review(token)).user is not None
    assert (await TokenReviews(kube, ManualClock(), ["other"]).review(token)).user is None


async def test_rights_follow_the_role_and_end_within_seconds_of_it(
    kube: Kube, control_plane: ControlPlane, namespace: str
) -> None:
    clock = ManualClock()
    reviews, user = AccessReviews(kube, clock), User(f"system:serviceaccount:{namespace}:default")
    here = LIST.format(namespace)
    assert not await reviews.may(user, attributes_of("GET", here))
    allow(control_plane, namespace, "list")
    assert not await reviews.may(user, attributes_of("GET", here)), "remembered"
    clock.advance(KEPT_SECONDS)
    assert await reviews.may(user, attributes_of("GET", here))
    assert not await reviews.may(user, attributes_of("POST", here))
    assert not await reviews.may(user, attributes_of("GET", LIST.format("kube-system")))
    assert not await reviews.may(user, attributes_of("GET", "/apis/ray.io/v1/rayclusters"))
    control_plane.admin.delete(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings/ray")
    clock.advance(KEPT_SECONDS)
    assert not await reviews.may(user, attributes_of("GET", here))


async def test_groups_count(kube: Kube) -> None:
    reviews, attributes = AccessReviews(kube, ManualClock()), attributes_of("DELETE", "/api/v1/namespaces/default")
    assert await reviews.may(User("jane", ("system:masters",)), attributes)
    assert not await reviews.may(User("jane"), attributes)


async def test_a_reviewer_without_the_right_to_ask_is_no_yes_and_no_no(
    kube: Kube, control_plane: ControlPlane, namespace: str
) -> None:
    powerless = kube.as_caller(a_token(control_plane, namespace))
    with pytest.raises(Unavailable, match=r"token reviews.*forbidden"):
        await TokenReviews(powerless, ManualClock()).review("any")
    with pytest.raises(Unavailable, match=r"subject access reviews.*forbidden"):
        await AccessReviews(powerless, ManualClock()).may(User("jane"), attributes_of("GET", "/version"))


async def test_one_question_is_asked_once_for_all_who_wait() -> None:
    asked, answered = 0, asyncio.Event()

    async def ask() -> str:
        nonlocal asked
        asked += 1
        await answered.wait()
        return "yes"

    remembered: Remembered[str] = Remembered(ManualClock())
    waiting = [asyncio.create_task(remembered.find("question", ask)) for _ in range(5)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    answered.set()
    assert await asyncio.gather(*waiting[1:]) == ["yes"] * 4
    assert asked == 1


async def test_a_failure_is_told_and_not_remembered() -> None:
    async def fail() -> str:
        raise Unavailable("reviews", "away")

    async def succeed() -> str:
        return "yes"

    remembered: Remembered[str] = Remembered(ManualClock())
    with pytest.raises(Unavailable):
        await remembered.find("question", fail)
    assert await remembered.find("question", succeed) == "yes"


async def test_memory_and_questions_under_way_are_bounded() -> None:
    remembered: Remembered[int] = Remembered(ManualClock())

    async def one() -> int:
        return 1

    for number in range(MOST_KEPT + 100):
        await remembered.find(number, one)
    assert len(remembered._kept) == MOST_KEPT

    never = asyncio.Event()

    async def wait() -> int:
        await never.wait()
        return 1

    waiting = [asyncio.create_task(remembered.find(("slow", number), wait)) for number in range(MOST_PENDING)]
    await asyncio.sleep(0)
    with pytest.raises(Unavailable, match="too many at once"):
        await remembered.find("one more", one)
    never.set()
    await asyncio.gather(*waiting)
