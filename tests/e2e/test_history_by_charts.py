"""From one chart to the other: a cluster with collectors, its end, and the history server that remembers it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from bed.node.real_node import RealNode
from bed.node.settings import RAY_VERSION
from bed.rest import Refused, Rest
from e2e.collected_scene import JOB, CollectedScene, PodBucket
from e2e.guide_shell import GuideShell
from e2e.history_process import History
from e2e.own_image import OWN_IMAGE, SMALL_IMAGE, own_image
from raykeeper.layout.keys import SessionId
from support.helm_releases import OUR_CHARTS
from support.kube_clients import connected
from support.raycluster_scene import CLUSTERS
from tools.image.programs import COLLECTOR

CLUSTER, SERVER = "ray-cluster-kuberay", "ray-history-server"
SECRETS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
PROGRAM: Final = "import ray; ray.init(); print(sum(ray.get([ray.remote(lambda n: n).remote(n) for n in range(5)])))"


@pytest.fixture
def shell(node_with_own_image: RealNode, tmp_path: Path) -> Iterator[GuideShell]:
    made = GuideShell(node_with_own_image.plane, tmp_path)
    yield made
    made.clean_up()
    made.plane.kubectl("delete", "secret", "bucket", "--namespace=default", "--ignore-not-found")


@pytest.fixture
def small_image(real_node: RealNode, imported: set[str]) -> str:
    """The image with nothing but the collector, on the node."""
    if SMALL_IMAGE not in imported:
        real_node.import_image(own_image(SMALL_IMAGE, COLLECTOR))
        imported.add(SMALL_IMAGE)
    return SMALL_IMAGE


def cluster_values(bucket: PodBucket, image: str) -> dict[str, Any]:
    """Values of the chart ray-cluster with collectors, whose credentials are in a Secret."""
    plain = [{"name": name, "value": value} for name, value in bucket.variables.items() if name not in SECRETS]
    secret = [{"name": name, "valueFrom": {"secretKeyRef": {"name": "bucket", "key": name}}} for name in SECRETS]
    env = [{"name": "STORAGE_BACKEND", "value": "s3"}, *plain, *secret]
    return {
        "image": {"tag": RAY_VERSION},
        "historyServerOptions": {"collectorOptions": {"image": image, "env": env}},
        "head": {"rayVersion": RAY_VERSION, "resources": {"limits": {"cpu": 2, "memory": "3Gi"}}},
        "worker": {"disabled": True},
    }


def server_values(bucket: PodBucket) -> dict[str, Any]:
    variables = {name: value for name, value in bucket.variables.items() if name not in SECRETS}
    return {
        "store": {"backend": "s3", "env": variables, "secretName": "bucket"},
        "kubernetesFacts": {"namespaces": ["default"]},
    }


def install(shell: GuideShell, release: str, chart: str, values: dict[str, Any]) -> None:
    file = shell.folder / f"{release}.yaml"
    file.write_text(yaml.safe_dump(values))
    shell.helm("install", release, OUR_CHARTS / chart, "--values", file)


async def live_and_die(shell: GuideShell) -> SessionId:
    """Run a job in the cluster and remove its release."""
    async with connected(shell.plane.admin_kubeconfig) as kube:
        scene = CollectedScene(kube, shell.plane, "default", CLUSTER)
        await scene.submit(f'python -c "{PROGRAM}"')
        assert (await scene.finished())["status"] == "SUCCEEDED"
        await scene.acknowledged_events()
        session = (await scene.ask("/api/version"))["session_name"]
        ips = await scene.pod_ips()
        shell.helm("uninstall", "ray-cluster")
        await scene.is_silent(ips.values())
        assert await kube.find(CLUSTERS, scene.key) is None
    return SessionId("default", CLUSTER, session)


def history_server(shell: GuideShell) -> Rest:
    """The server behind its Service, with the token that the chart made."""
    shell.wait_for_deployment(SERVER)
    service = shell.plane.admin.get(f"/api/v1/namespaces/default/services/{SERVER}")
    assert [port["port"] for port in service["spec"]["ports"]] == [80, 3000]
    address = f"http://{service['spec']['clusterIP']}"
    for port, path in ((80, "/api/v1/sessions"), (3000, "/monitoring")):
        with pytest.raises(Refused, match="401"):
            Rest(f"{address}:{port}").get(path)
    secret = shell.plane.admin.get(f"/api/v1/namespaces/default/secrets/{SERVER}-token")
    token = base64.b64decode(secret["data"]["token"]).decode()
    return Rest(address, headers={"Authorization": f"Bearer {token}"})


@pytest.mark.timeout(900)
async def test_a_cluster_of_one_chart_is_remembered_by_the_server_of_the_other(
    shell: GuideShell, pod_bucket: PodBucket, small_image: str
) -> None:
    gates = ("--set", "featureGates[0].name=RayClusterHistoryServer", "--set", "featureGates[0].enabled=true")
    shell.helm("install", "kuberay-operator", OUR_CHARTS / "kuberay-operator", *gates)
    credentials = [f"--from-literal={name}={pod_bucket.variables[name]}" for name in SECRETS]
    shell.plane.kubectl("create", "secret", "generic", "bucket", *credentials, "--namespace=default")
    install(shell, "ray-cluster", "ray-cluster", cluster_values(pod_bucket, small_image))
    shell.wait_for_cluster(CLUSTER)
    (head,) = shell.pods(selector="ray.io/node-type=head")
    assert small_image in [
        container["image"] for container in (*head["spec"]["initContainers"], *head["spec"]["containers"])
    ]
    session = await live_and_die(shell)
    install(shell, SERVER, SERVER, server_values(pod_bucket))
    server = history_server(shell)
    told = History(server).of(session)
    assert told.ask(f"/api/jobs/{JOB}")["status"] == "SUCCEEDED"
    assert "10" in told.ask(f"/api/jobs/{JOB}/logs")["logs"]
    assert told.ask("/api/v0/tasks")["data"]["result"]["total"] == 5
    assert b"Ray Dashboard" in server.raw("GET", f"{told.prefix}/"), "Ray's own pages came with the image"
    assert OWN_IMAGE in str(shell.pods(selector=f"app.kubernetes.io/name={SERVER}"))
