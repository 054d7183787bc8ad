"""KubeRay's ways to a session: the list of clusters, the door to each, and what is said of those that run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from raykeeper.history.http.app import make_app
from raykeeper.layout.keys import SessionId
from support.history_scene import SESSION, STARTED_AT, Scene, a_scene, put_beat, put_end, put_session, session_url
from support.kuberay_client import KubeRayClient, kuberay_client

LATER = SessionId("team-a", "train", "session_2026-11-15_22-00-00_000000_9")
ENTER = "/enter_cluster/team-a/raycluster/train"


@dataclass
class Kubernetes:
    """Says which RayClusters are gone."""

    gone: set[tuple[str, str]] = field(default_factory=set)

    async def is_gone(self, namespace: str, cluster: str, uid: str) -> bool:
        return (namespace, cluster) in self.gone


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return a_scene(tmp_path)


@pytest.fixture
async def client(scene: Scene) -> AsyncIterator[KubeRayClient]:
    async with kuberay_client(scene.app) as client:
        yield client


async def test_a_running_cluster_is_listed_first_and_as_live(scene: Scene, client: KubeRayClient) -> None:
    ended = SessionId("team-b", "old", "session_2026-11-16_08-00-00_000000_9")
    await put_session(scene.store, ended, started_at=STARTED_AT + timedelta(hours=12), ended_at=STARTED_AT)
    await put_session(scene.store, owner=("RayJob", "nightly"))
    await put_beat(scene.store)
    rows = await client.json("/clusters")
    assert rows == await client.json("/clusters/")
    assert rows == [
        {
            "name": "train",
            "namespace": "team-a",
            "sessionName": "live",
            "createTime": "2026-11-15 20:00:00 +0000 UTC",
            "createTimeStamp": 1794772800,
            "ownerKind": "rayjob",
            "ownerName": "nightly",
        },
        {
            "name": "old",
            "namespace": "team-b",
            "sessionName": ended.session,
            "createTime": "2026-11-16T08:00:00Z",
            "createTimeStamp": 1794816000,
        },
    ]


async def test_a_cluster_is_live_once_and_its_earlier_sessions_have_their_names(
    scene: Scene, client: KubeRayClient
) -> None:
    await put_session(scene.store)
    await put_beat(scene.store)
    await put_session(scene.store, LATER, started_at=STARTED_AT + timedelta(hours=2))
    await put_beat(scene.store, session=LATER)
    assert [row["sessionName"] for row in await client.json("/clusters")] == ["live", SESSION.session]


async def test_a_hundred_stored_sessions_are_listed_beside_those_that_run(scene: Scene, client: KubeRayClient) -> None:
    for number in range(103):
        session = SessionId("team-b", "many", f"session_{number:03d}")
        await put_session(scene.store, session, started_at=STARTED_AT + timedelta(minutes=number), ended_at=STARTED_AT)
    await put_session(scene.store)
    await put_beat(scene.store)
    names = [row["sessionName"] for row in await client.json("/clusters")]
    assert names == ["live", *(f"session_{number:03d}" for number in range(102, 2, -1))]


@pytest.mark.parametrize("wanted", ["", "/", "/latest", "/live", f"/{SESSION.session}"])
async def test_the_session_of_a_running_cluster_is_entered_as_live(
    scene: Scene, client: KubeRayClient, wanted: str
) -> None:
    await put_session(scene.store)
    await put_beat(scene.store)
    entered = await client.json(f"{ENTER}{wanted}")
    assert entered == {"result": "success", "name": "train", "namespace": "team-a", "session": "live"}
    assert (await client.json("/api/version"))["session_name"] == SESSION.session


async def test_an_earlier_session_of_a_running_cluster_is_entered_by_its_name(
    scene: Scene, client: KubeRayClient
) -> None:
    await put_session(scene.store)
    await put_session(scene.store, LATER, started_at=STARTED_AT + timedelta(hours=2))
    await put_beat(scene.store, session=LATER)
    assert (await client.json(f"{ENTER}/{SESSION.session}"))["session"] == SESSION.session
    assert (await client.json("/api/version"))["session_name"] == SESSION.session


async def test_a_cluster_that_ended_is_not_live_but_whoever_was_in_it_may_stay(
    scene: Scene, client: KubeRayClient, tmp_path: Path
) -> None:
    await put_session(scene.store)
    await put_beat(scene.store)
    await client.json(f"{ENTER}/live")
    await put_end(scene.store)
    async with kuberay_client(a_scene(tmp_path).app) as later:  # as if seconds had passed
        assert (await later.get(f"{ENTER}/live")).status == 404
        assert (await later.json(f"{ENTER}/latest"))["session"] == SESSION.session
        assert (await later.listed("team-a", "train"))["sessionName"] == SESSION.session
    assert (await client.json("/api/version"))["session_name"] == SESSION.session


async def test_a_deleted_cluster_is_not_live_while_its_pods_still_end(scene: Scene) -> None:
    kubernetes = Kubernetes()
    await put_session(scene.store)
    await put_beat(scene.store)
    async with kuberay_client(make_app(replace(scene.history, presence=kubernetes))) as client:
        assert (await client.listed("team-a", "train"))["sessionName"] == "live"
        kubernetes.gone.add(("team-a", "train"))
        assert (await client.listed("team-a", "train"))["sessionName"] == SESSION.session
        assert (await client.json(f"{ENTER}/{SESSION.session}"))["session"] == SESSION.session
        assert (await client.get(f"{ENTER}/live")).status == 404


@pytest.mark.parametrize("wanted", ["live", "latest", SESSION.session])
async def test_a_cluster_is_entered_without_a_kind_as_before_kuberay_1_7(
    scene: Scene, client: KubeRayClient, wanted: str
) -> None:
    await put_session(scene.store)
    await put_beat(scene.store)
    assert (await client.json(f"/enter_cluster/team-a/train/{wanted}"))["name"] == "train"
    assert (await client.get("/enter_cluster/team-a/train/other")).status == 400


async def test_live_works_below_a_sessions_own_address_too(scene: Scene, client: KubeRayClient) -> None:
    await put_session(scene.store)
    answered = await client.get("/s/team-a/train/live/api/version")
    assert (answered.status, answered.headers["location"]) == (302, f"{session_url()}/api/version")
