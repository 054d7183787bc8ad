"""The pages about what exists in Kubernetes now, in a real browser and against a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bed.control_plane import ControlPlane
from bed.fixtures import make_namespace, remove_namespace
from bed.npm import npm_is_missing
from history.browser.dead_session import serving_process
from history.browser.inspecting import faults_on
from history.browser.own_pages import OwnPage
from history.browser.tab import Tab
from support.live_scene import NOBODY, LiveScene

NAMESPACE = "live-pages"
PREFIX = f"/live/raycluster/{NAMESPACE}"
PAGES = (
    OwnPage("live", "/live", ("train", "RayService", "RayCronJob", "As of")),
    OwnPage("live-none", "/live?text=nothing-is-called-so", ("There is no such object.",)),
    OwnPage(
        "live-cluster", f"{PREFIX}/train", ("It is not ready", "train-head", "ImagePullBackOff", "FailedScheduling")
    ),
    OwnPage("live-cron", f"/live/raycronjob/{NAMESPACE}/hourly", ("0 * * * *", "It has no RayJobs now.")),
    OwnPage("live-nowhere", f"{PREFIX}/never", ("There is no RayCluster",), 404),
)
CONDITION = {
    "type": "Ready",
    "status": "False",
    "reason": "PodsNotReady",
    "message": "1 of 2 pods waits for its image",
    "lastTransitionTime": "2026-11-17T00:00:00Z",
}
WAITING = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "rayproject/ray:2.60.O"'}}
STATUS = {"name": "ray", "image": "x", "imageID": "", "ready": False, "restartCount": 2, "state": WAITING}
pytestmark = [pytest.mark.bed, pytest.mark.skipif(npm_is_missing() is not None, reason=str(npm_is_missing()))]


@pytest.fixture(scope="module")
def live_site(ray_crds: ControlPlane, server_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    make_namespace(ray_crds, NAMESPACE)
    scene = LiveScene(ray_crds, NAMESPACE)
    scene.make_all()
    uid = ray_crds.admin.get(f"/apis/ray.io/v1/namespaces/{NAMESPACE}/rayclusters/train")["metadata"]["uid"]
    cluster = scene.cluster_id("train", uid)
    scene.make_pod(cluster, "train-head", "head", scheduler=NOBODY)
    scene.patch_status("train-head", phase="Pending", containerStatuses=[STATUS])
    scene.set_cluster_status("train", state="ready", conditions=[CONDITION])
    scene.tell({"kind": "Pod", "name": "train-head"}, "FailedScheduling", "0/4 nodes are available")
    variables = {"RAYKEEPER_LIVE_OBJECTS": "on", "KUBECONFIG": str(ray_crds.admin_kubeconfig)}
    variables |= {"RAYKEEPER_KUBERNETES_NAMESPACES": NAMESPACE}
    with serving_process(tmp_path_factory.mktemp("live"), server_folder / "live", **variables) as url:
        yield url.partition("/s/")[0]
    remove_namespace(ray_crds, NAMESPACE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
async def test_a_page_about_what_exists_now_has_no_barriers_no_errors_and_no_overflow(
    page: OwnPage, tab: Tab, live_site: str, shots: Path
) -> None:
    assert await faults_on(page, tab, live_site, shots) == []


async def test_from_the_list_an_object_is_one_click_away(tab: Tab, live_site: str) -> None:
    await tab.open(f"{live_site}/live?kind=RayCluster")
    await tab.shows(["train"])
    await tab.click("train", "a")
    await tab.shows(["Conditions", "Pods", "Events"])
