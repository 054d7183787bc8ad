"""A cluster whose head never started has no session, and is told of all the same: in the API and on pages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from raykeeper.history.http.keeper_api.operation import PREFIX
from raykeeper.history.store.unstarted import UnstartedClusters
from raykeeper.layout.keys import KubeFactsKey, SessionId
from raykeeper.layout.kube_facts import ClusterFact, encode_facts
from raykeeper.storage.store import ObjectStore
from recording.archives import ARCHIVES, unpack_into
from support.asking import ask
from support.clocks import ManualClock
from support.history_scene import STARTED_AT, Scene, a_scene, put_session, session_url
from support.recorded_failures import SUFFIX

RECORDED = "head-image-missing"
CLUSTERS, PAGE = f"{PREFIX}/clusters", f"/clusters/recorded/{RECORDED}"
SECTION = "Never started"
SECOND_NS = 1_000_000_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def scene(tmp_path: Path, clock: ManualClock) -> Scene:
    return a_scene(tmp_path, clock=clock)


@pytest.fixture
def recorded(scene: Scene, tmp_path: Path) -> Scene:
    """With the real cluster whose image was missing."""
    unpack_into(tmp_path / "store", ARCHIVES / f"{RECORDED}{SUFFIX}")
    return scene


async def put_facts(store: ObjectStore, cluster: str, *, hour: int = 0, uid: str = "u1") -> None:
    at = STARTED_AT + timedelta(hours=hour)
    key = KubeFactsKey("team-a", cluster, uid, int(at.timestamp()) * SECOND_NS).key
    await store.put(key, encode_facts([ClusterFact(at=at, uid=uid, name=cluster)]))


async def listed(scene: Scene, query: str = "") -> tuple[list[str], bool]:
    answered = (await ask(scene.app, f"{CLUSTERS}/unstarted{query}")).body
    return [one["cluster"] for one in answered["clusters"]], answered["is_complete"]


async def test_the_report_says_what_kubernetes_said(recorded: Scene) -> None:
    report = (await ask(recorded.app, f"{CLUSTERS}/recorded/{RECORDED}/report")).body
    assert (report["outcome"], report["root_cause"]["rule"]) == ("failed", "missing_image")


async def test_the_page_shows_that_report_and_leads_to_no_dashboard(recorded: Scene) -> None:
    page = await ask(recorded.app, PAGE)
    assert page.status == 200
    for words in ("Root cause", "ErrImageNeverPull", "its head never said anything"):
        assert words in page.text
    for words in ("Ray dashboard", "attempts failed"):
        assert words not in page.text


async def test_the_start_page_leads_to_it(recorded: Scene) -> None:
    await listed(recorded)  # which waits for as long as a look takes
    page = (await ask(recorded.app, "/")).text
    assert SECTION in page
    assert f'href="{PAGE}"' in page


async def test_a_start_page_that_was_asked_for_some_sessions_tells_of_them_alone(recorded: Scene) -> None:
    await listed(recorded)
    assert SECTION not in (await ask(recorded.app, "/sessions?text=train")).text


async def test_where_every_cluster_started_the_start_page_says_nothing(scene: Scene) -> None:
    await put_session(scene.store)
    await put_facts(scene.store, "train")
    assert await listed(scene) == ([], True)
    assert SECTION not in (await ask(scene.app, "/")).text


async def test_the_start_page_shows_a_few_and_says_of_how_many(scene: Scene) -> None:
    for number in range(8):
        await put_facts(scene.store, f"train-{number}", hour=number)
    await listed(scene)
    page = (await ask(scene.app, "/")).text
    assert [number for number in range(8) if f"/clusters/team-a/train-{number}" in page] == [3, 4, 5, 6, 7]
    assert "The newest of 8." in page


async def test_the_newest_are_listed_first_up_to_a_limit(scene: Scene) -> None:
    for name, hour in (("b", 1), ("c", 3), ("a", 2)):
        await put_facts(scene.store, name, hour=hour)
    await put_facts(scene.store, "b", hour=4, uid="u0")
    assert await listed(scene) == (["b", "c", "a"], True)
    assert await listed(scene, "?limit=2") == (["b", "c"], False)
    first = (await ask(scene.app, f"{CLUSTERS}/unstarted?limit=1")).body["clusters"]
    path = "/clusters/team-a/b"
    assert first == [{"namespace": "team-a", "cluster": "b", "first_at": "2026-11-16T00:00:00Z", "path": path}]


async def test_a_cluster_that_starts_after_all_leaves_the_list_and_its_page_leads_to_the_session(
    scene: Scene, clock: ManualClock
) -> None:
    await put_facts(scene.store, "train")
    assert await listed(scene) == (["train"], True)
    assert "Not started so far" in (await ask(scene.app, "/clusters/team-a/train")).text
    await put_session(scene.store)
    clock.advance(61)
    assert await listed(scene) == ([], True)
    page = await ask(scene.app, "/clusters/team-a/train")
    assert (page.status, page.headers["location"]) == (302, f"{session_url()}/report")
    report = await ask(scene.app, f"{CLUSTERS}/team-a/train/report")
    assert (report.status, list(report.body)) == (404, ["error"])


async def test_a_cluster_that_nobody_told_of_is_not_found(scene: Scene) -> None:
    answered = await ask(scene.app, f"{CLUSTERS}/team-a/nobody/report")
    assert (answered.status, answered.body) == (404, {"error": "nothing is known of a cluster team-a/nobody"})
    assert (await ask(scene.app, "/clusters/team-a/nobody")).status == 404


async def test_a_look_is_believed_for_a_minute(scene: Scene, clock: ManualClock) -> None:
    assert await listed(scene) == ([], True)
    await put_facts(scene.store, "train")
    assert await listed(scene) == ([], True)
    clock.advance(61)
    assert await listed(scene) == (["train"], True)


async def test_more_clusters_than_one_look_goes_through_are_said_to_be_missing(
    scene: Scene, clock: ManualClock
) -> None:
    for number in range(40):
        await put_facts(scene.store, f"train-{number:02d}")
    known = await UnstartedClusters(scene.store, clock, most_names=20).known_within(10)
    assert (len(known.found) < 40, known.is_complete) == (True, False)


async def test_a_page_does_not_wait_for_a_long_look_and_finds_its_result_later(
    scene: Scene, clock: ManualClock
) -> None:
    await put_facts(scene.store, "train")
    clusters = UnstartedClusters(scene.store, clock)
    assert not (await clusters.known_within(0)).is_complete
    known = await clusters.known_within(10)
    assert [one.cluster for one in known.found] == ["train"]
    assert known.found[0].first_at == datetime(2026, 11, 15, 20, tzinfo=UTC)


async def test_a_session_of_another_namespace_is_not_taken_for_the_clusters_own(scene: Scene) -> None:
    await put_session(scene.store, SessionId("team-b", "train", "session_1"))
    await put_facts(scene.store, "train")
    assert await listed(scene) == (["train"], True)
