"""The API server by its chart with nothing changed, on a real node: behind its proxy, with rights that suffice."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
import pytest

from bed.node.real_node import RealNode
from bed.node.settings import RAY_IMAGE, RAY_VERSION
from bed.rest import Refused, Rest
from bed.waiting import PATIENCE_SECONDS, wait_until
from e2e.guide_shell import READY_SECONDS, GuideShell
from e2e.own_image import OWN_IMAGE
from raykeeper.apiserver.protos import cluster_pb2
from raykeeper.client.python_apiserver_client import KubeRayAPIs
from raykeeper.client.python_apiserver_client.params import Cluster, ClusterSpec, HeadNodeSpec, RayJobRequest, Template
from support.helm_releases import OUR_CHARTS

SERVER: Final = "kuberay-apiserver"
NAMESPACE: Final = "default"
CLUSTER: Final = "by-v1"
TEMPLATES: Final = f"/apis/v1/namespaces/{NAMESPACE}/compute_templates"
RAY_CLUSTERS: Final = f"/apis/ray.io/v1/namespaces/{NAMESPACE}/rayclusters"
PROGRAM: Final = (
    "import ray; ray.init(); print('sum', sum(ray.get([ray.remote(lambda n: n).remote(n) for n in range(5)])))"
)


@pytest.fixture
def shell(node_with_own_image: RealNode, tmp_path: Path) -> Iterator[GuideShell]:
    made = GuideShell(node_with_own_image.plane, tmp_path)
    yield made
    made.plane.kubectl("delete", "raycluster", CLUSTER, f"--namespace={NAMESPACE}", "--ignore-not-found")
    made.plane.kubectl("delete", "configmap", "small", f"--namespace={NAMESPACE}", "--ignore-not-found")
    made.clean_up()


@dataclass(frozen=True)
class Server:
    """The Service of the chart, and the token that the chart made."""

    host: str
    ports: dict[str, int]
    token: str

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.ports['http']}"

    def rest(self, token: str = "") -> Rest:
        return Rest(self.url, headers={"Authorization": token} if token else {})

    def list_by_grpc(self, token: str = "") -> Any:
        """The clusters of the namespace, or the code of the refusal."""
        metadata = [("authorization", token)] if token else []
        with grpc.insecure_channel(f"{self.host}:{self.ports['rpc']}") as channel:
            call: Any = channel.unary_unary(
                "/proto.ClusterService/ListCluster",
                request_serializer=cluster_pb2.ListClustersRequest.SerializeToString,
                response_deserializer=cluster_pb2.ListClustersResponse.FromString,
            )
            try:
                answer = call(cluster_pb2.ListClustersRequest(namespace=NAMESPACE), timeout=30, metadata=metadata)
            except grpc.RpcError as refusal:
                return refusal.code()
        return [(cluster.name, cluster.cluster_state) for cluster in answer.clusters]

    def watched(self) -> Iterator[Any]:
        """The events of a watch over V2, one by one."""
        connection = http.client.HTTPConnection(self.host, self.ports["http"], timeout=60)
        try:
            place = f"{RAY_CLUSTERS}?watch=true&timeoutSeconds=60"
            connection.request("GET", place, headers={"Authorization": self.token})
            response = connection.getresponse()
            assert response.status == 200
            while line := response.readline():
                yield json.loads(line)
        finally:
            connection.close()


def the_server(shell: GuideShell) -> Server:
    shell.wait_for_deployment(SERVER)
    (pod,) = shell.pods(selector=f"app.kubernetes.io/component={SERVER}")
    statuses = pod["status"]["containerStatuses"]
    assert [(status["image"], status["ready"], status["restartCount"]) for status in statuses] == [
        (OWN_IMAGE, True, 0)
    ] * 2
    admin = shell.plane.admin
    spec = admin.get(f"/api/v1/namespaces/{NAMESPACE}/services/{SERVER}-service")["spec"]
    secret = admin.get(f"/api/v1/namespaces/{NAMESPACE}/secrets/{SERVER}-token")["data"]["SECURITY_TOKEN"]
    ports = {port["name"]: port["port"] for port in spec["ports"]}
    return Server(spec["clusterIP"], ports, base64.b64decode(secret).decode())


def assert_only_the_token_opens(server: Server) -> None:
    for path in (TEMPLATES, RAY_CLUSTERS, "/metrics"):
        for wrong in ("", "12345", f"{server.token}x"):
            with pytest.raises(Refused, match="401"):
                server.rest(wrong).raw("GET", path)
    for path in (TEMPLATES, RAY_CLUSTERS):
        assert server.rest(server.token).raw("GET", path)
    assert server.list_by_grpc() is grpc.StatusCode.UNAUTHENTICATED
    assert server.list_by_grpc("12345") is grpc.StatusCode.UNAUTHENTICATED
    assert server.list_by_grpc(server.token) == []


def run_a_job(apis: KubeRayAPIs) -> str:
    """The log of a job that the API server gave to the head."""
    status, problem, sid = apis.submit_job(NAMESPACE, CLUSTER, RayJobRequest(f'python -c "{PROGRAM}"'))
    assert (status, problem) == (200, None)
    assert sid is not None

    def state() -> str:
        info = apis.get_job_info(NAMESPACE, CLUSTER, sid)[2]
        return info.status if info else ""

    wait_until("the job has succeeded", lambda: state() == "SUCCEEDED", PATIENCE_SECONDS)
    return apis.get_job_log(NAMESPACE, CLUSTER, sid)[2] or ""


@pytest.mark.timeout(900)
def test_the_chart_as_it_is_serves_both_versions_to_who_has_the_token(shell: GuideShell) -> None:
    shell.helm("install", "kuberay-operator", OUR_CHARTS / "kuberay-operator")
    shell.helm("install", SERVER, OUR_CHARTS / SERVER)
    server = the_server(shell)
    assert_only_the_token_opens(server)

    apis = KubeRayAPIs(server.url, token=server.token)
    assert apis.create_compute_template(Template("small", NAMESPACE, cpu=2, memory=3)) == (200, None)
    start = {"dashboard-host": "0.0.0.0", "num-cpus": "1"}  # the client's own default leaves none to tasks
    spec = ClusterSpec(HeadNodeSpec("small", RAY_IMAGE, start))
    assert apis.create_cluster(Cluster(CLUSTER, NAMESPACE, "tests", RAY_VERSION, spec)) == (200, None)
    changes = server.watched()
    assert (first := next(changes))["type"] == "ADDED"
    assert first["object"]["metadata"]["name"] == CLUSTER
    assert apis.wait_cluster_ready(NAMESPACE, CLUSTER, wait=int(READY_SECONDS)) == (200, None)
    assert any(change["object"].get("status", {}).get("state") == "ready" for change in changes), "the watch goes on"

    assert server.list_by_grpc(server.token) == [(CLUSTER, "ready")]
    listed = server.rest(server.token).get(RAY_CLUSTERS)["items"]
    assert [item["metadata"]["name"] for item in listed] == [CLUSTER]
    assert "sum 10" in run_a_job(apis)
    assert apis.delete_cluster(NAMESPACE, CLUSTER) == (200, None)
    wait_until("the cluster is gone", lambda: server.list_by_grpc(server.token) == [], PATIENCE_SECONDS)
