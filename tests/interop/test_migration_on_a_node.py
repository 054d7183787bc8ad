"""KubeRay's own operator and a cluster of its own chart on a real node become ours by `helm upgrade`, and go back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from bed.binaries import binary
from bed.golang import module_folder
from bed.kuberay import VERSION
from bed.node.image import one_program_image
from bed.node.real_node import RealNode
from bed.node.settings import RAY_VERSION
from bed.waiting import wait_until
from e2e.guide_shell import READY_SECONDS, GuideShell
from e2e.own_image import OWN_IMAGE, own_image
from raykeeper.api import labels
from support.helm_releases import OUR_CHARTS

pytestmark = pytest.mark.interop

OPERATOR: Final = "kuberay-operator"
KUBERAYS_IMAGE: Final = f"quay.io/kuberay/operator:{VERSION}"
CLUSTER: Final = (
    f"image.tag={RAY_VERSION},head.rayVersion={RAY_VERSION},head.resources.limits.memory=2Gi,head.resources.requests.memory=2Gi,"
    "worker.resources.limits.memory=1Gi,worker.resources.requests.memory=1Gi"
)


@pytest.fixture
def shell(real_node: RealNode, tmp_path: Path) -> Iterator[GuideShell]:
    """A node that has both operators' images under the names of their charts."""
    manager = {"/manager": binary("kuberay-operator")}
    real_node.import_image(
        one_program_image(KUBERAYS_IMAGE, manager, entrypoint=["/manager"], user="65532:65532", environment=("PATH=/",))
    )
    real_node.import_image(own_image(OWN_IMAGE))
    made = GuideShell(real_node.plane, tmp_path)
    yield made
    made.clean_up()


def ray_pods(shell: GuideShell) -> dict[str, tuple[str, int]]:
    """Uid and number of restarts of each Ray pod."""
    pods = shell.pods(selector=f"{labels.IS_RAY_NODE}=yes")
    return {
        pod["metadata"]["name"]: (pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"])
        for pod in pods
    }


def image_of_the_operator(shell: GuideShell) -> str:
    (pod,) = shell.pods(selector=f"app.kubernetes.io/name={OPERATOR}")
    return str(pod["spec"]["containers"][0]["image"])


@pytest.mark.timeout(1500)
def test_no_ray_pod_is_touched_on_the_way_to_us_and_back(shell: GuideShell) -> None:
    helm = shell.helm
    theirs = module_folder("github.com/ray-project/kuberay", VERSION) / "helm-chart"
    shell.plane.kubectl("delete", "--ignore-not-found", *(f"crd/{kind}.ray.io" for kind in ("rayclusters", "rayjobs")))
    shell.plane.kubectl("delete", "--ignore-not-found", "crd/rayservices.ray.io", "crd/raycronjobs.ray.io")
    helm("install", OPERATOR, theirs / OPERATOR)
    helm("install", "raycluster", theirs / "ray-cluster", "--set", CLUSTER)
    shell.wait_for_deployment(OPERATOR)
    shell.wait_for_cluster("raycluster-kuberay")
    assert image_of_the_operator(shell) == KUBERAYS_IMAGE
    before = ray_pods(shell)
    assert len(before) == 2

    helm("upgrade", OPERATOR, OUR_CHARTS / OPERATOR)
    helm("upgrade", "raycluster", OUR_CHARTS / "ray-cluster", "--set", CLUSTER)
    shell.wait_for_deployment(OPERATOR)
    assert image_of_the_operator(shell) == OWN_IMAGE
    shell.wait_for_cluster("raycluster-kuberay")
    wait_until("our operator has looked", lambda: _is_ours(shell), READY_SECONDS)
    assert ray_pods(shell) == before

    helm("upgrade", "raycluster", OUR_CHARTS / "ray-cluster", "--set", f"{CLUSTER},worker.replicas=2")
    wait_until("a third pod", lambda: len(ray_pods(shell)) == 3, READY_SECONDS)
    assert before.items() <= ray_pods(shell).items()
    helm("rollback", "raycluster", "2")
    wait_until("two pods again", lambda: ray_pods(shell) == before, READY_SECONDS)

    helm("rollback", OPERATOR, "1")
    helm("rollback", "raycluster", "1")
    shell.wait_for_deployment(OPERATOR)
    assert image_of_the_operator(shell) == KUBERAYS_IMAGE
    shell.wait_for_cluster("raycluster-kuberay")
    assert ray_pods(shell) == before


def _is_ours(shell: GuideShell) -> bool:
    """Whether our operator wrote the status: KubeRay's knows no condition Ready of a RayCluster."""
    cluster = shell.plane.admin.get("/apis/ray.io/v1/namespaces/default/rayclusters/raycluster-kuberay")
    return any(condition["type"] == "Ready" for condition in cluster["status"]["conditions"])
