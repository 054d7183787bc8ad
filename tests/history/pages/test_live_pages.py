"""The pages and operations about what exists now, and the way from there to the history."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from starlette.types import ASGIApp

from raykeeper.history.http.app import make_app
from raykeeper.history.live_objects.model import (
    LiveCondition,
    LiveDetail,
    LiveKind,
    LiveObject,
    LiveObjectList,
    LivePod,
    LiveProblem,
)
from raykeeper.layout.keys import KubeFactsKey
from raykeeper.layout.kube_facts import ClusterFact, encode_facts
from support.asking import ask
from support.history_scene import SESSION, Scene, a_scene, put_session, session_url

AT = datetime(2026, 11, 17, 12, tzinfo=UTC)
API = "/api/keeper/v1/live"
READY = LiveCondition(type="Ready", status="False", words="It is not ready", tone="warn", message="<b>1 pod</b>")
CLUSTER = LiveObject(
    kind="RayCluster",
    namespace=SESSION.namespace,
    name=SESSION.cluster,
    uid="u1",
    state="ready",
    created_at=AT,
    owner_kind="RayJob",
    owner_name="nightly",
    clusters=(SESSION.cluster,),
    conditions=(READY,),
)
UNSTARTED = LiveObject(
    kind="RayCluster", namespace="team-b", name="new", uid="u2", state="starting", created_at=AT, clusters=("new",)
)
CRON = LiveObject(kind="RayCronJob", namespace="team-b", name="hourly", uid="u3", state="scheduled", created_at=AT)
FORBIDDEN = LiveProblem(
    cause="forbidden",
    words="The server lacks the right to list rayjobs.ray.io in all namespaces",
    verb="list",
    resource="rayjobs.ray.io",
)
POD = LivePod(
    namespace=SESSION.namespace, name="head-0", role="head", phase="Pending", words="No node can take it", restarts=3
)


@dataclass
class KnownObjects:
    """Objects that the test made up."""

    objects: tuple[LiveObject, ...] = (CLUSTER, UNSTARTED, CRON)
    problems: tuple[LiveProblem, ...] = ()
    refusal: LiveProblem | None = None
    asked: list[str] = field(default_factory=list)

    async def all(self) -> LiveObjectList:
        return LiveObjectList(objects=self.objects, as_of=AT, is_complete=not self.problems, problems=self.problems)

    async def find(self, kind: LiveKind, namespace: str, name: str) -> LiveDetail | LiveProblem | None:
        self.asked.append(name)
        found = [one for one in self.objects if (one.kind, one.namespace, one.name) == (kind, namespace, name)]
        return self.refusal or (LiveDetail(object=found[0], as_of=AT, pods=(POD,)) if found else None)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return a_scene(tmp_path)


def app_of(scene: Scene, objects: KnownObjects | None = None) -> ASGIApp:
    return make_app(replace(scene.history, live_objects=objects or KnownObjects()))


async def test_a_cluster_leads_to_its_session_and_its_report(scene: Scene) -> None:
    await put_session(scene.store)
    page = (await ask(app_of(scene), "/live")).text
    assert f'href="{session_url()}/overview"' in page
    assert f'href="{session_url()}/report"' in page
    assert f'href="/live/raycluster/{SESSION.namespace}/{SESSION.cluster}"' in page
    assert "of RayJob nightly" in page


async def test_a_cluster_without_a_session_leads_to_why_it_does_not_start(scene: Scene) -> None:
    key = KubeFactsKey("team-b", "new", "u2", 1_794_770_033_063_000_000).key
    await scene.store.put(key, encode_facts([ClusterFact(at=AT, uid="u2", name="new")]))
    [row] = [one for one in (await ask(app_of(scene), API)).body["objects"] if one["object"]["name"] == "new"]
    assert row["history"] == {"session": "", "job": "", "report": "/clusters/team-b/new"}
    assert (await ask(app_of(scene), row["history"]["report"])).status == 200


async def test_a_cluster_of_which_nothing_was_stored_leads_nowhere(scene: Scene) -> None:
    [row] = [one for one in (await ask(app_of(scene), API)).body["objects"] if one["object"]["name"] == "new"]
    assert row["history"] == {"session": "", "job": "", "report": ""}


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", [SESSION.cluster, "new", "hourly"]),
        ("?namespace=team-b", ["new", "hourly"]),
        ("?kind=RayCronJob", ["hourly"]),
        ("?state=starting", ["new"]),
        ("?text=HOUR", ["hourly"]),
        ("?limit=1&offset=1", ["new"]),
    ],
)
async def test_the_list_is_narrowed(query: str, names: list[str], scene: Scene) -> None:
    answer = (await ask(app_of(scene), API + query)).body
    assert [one["object"]["name"] for one in answer["objects"]] == names
    assert answer["namespaces"] == sorted({SESSION.namespace, "team-b"})
    assert answer["as_of"] == "2026-11-17T12:00:00Z"


async def test_one_object_is_shown_with_conditions_in_words_and_pods(scene: Scene) -> None:
    page = (await ask(app_of(scene), f"/live/raycluster/{SESSION.namespace}/{SESSION.cluster}")).text
    for words in ("It is not ready", "&lt;b&gt;1 pod", "head-0", "No node can take it", "2026-11-17 12:00:00 UTC"):
        assert words in page
    assert f'href="/live/rayjob/{SESSION.namespace}/nightly"' in page


async def test_a_missing_right_is_named_where_nothing_can_be_shown(scene: Scene) -> None:
    page = (await ask(app_of(scene, KnownObjects((), (FORBIDDEN,))), "/live")).text
    for words in (
        "rights in Kubernetes are missing",
        "list rayjobs.ray.io",
        "in all namespaces",
        "liveObjects.enabled",
    ):
        assert words in page


async def test_a_missing_right_stands_above_what_can_be_shown(scene: Scene) -> None:
    page = (await ask(app_of(scene, KnownObjects(problems=(FORBIDDEN,))), "/live")).text
    assert "lacks the right to list rayjobs.ray.io" in page
    assert "hourly" in page


async def test_an_object_that_may_not_be_read_says_which_right_is_missing(scene: Scene) -> None:
    app = app_of(scene, KnownObjects(refusal=FORBIDDEN))
    page = await ask(app, "/live/rayjob/team-a/x")
    assert (page.status, FORBIDDEN.words in page.text) == (503, True)
    answer = await ask(app, f"{API}/rayjob/team-a/x")
    assert (answer.status, "lacks the right" in answer.body["error"]) == (503, True)


async def test_without_kubernetes_the_page_says_how_to_connect_it(scene: Scene) -> None:
    page = await ask(scene.app, "/live")
    assert page.status == 200
    assert "--live-objects=on" in page.text
    assert (await ask(scene.app, API)).body["problems"][0]["cause"] == "off"
    assert (await ask(scene.app, f"{API}/rayjob/a/b")).status == 404


@pytest.mark.parametrize(
    ("path", "words"),
    [("/live/pod/a/b", "There is no kind"), ("/live/rayjob/a/b", "There is no RayJob a/b in Kubernetes now")],
)
async def test_what_is_not_there_is_not_found(path: str, words: str, scene: Scene) -> None:
    page = await ask(app_of(scene), path)
    assert (page.status, words in page.text) == (404, True)


async def test_nobody_can_write_through_these_pages(scene: Scene) -> None:
    for path in ("/live", f"/live/raycluster/{SESSION.namespace}/{SESSION.cluster}", API):
        assert (await ask(app_of(scene), path, method="POST")).status in (403, 405)
