"""What KubeRay's tests of its Python client of V1 ask for, against our API server and operator."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import pytest

from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.ports import free_port
from raykeeper.client import Unavailable
from raykeeper.client.python_apiserver_client import KubeRayAPIs
from raykeeper.client.python_apiserver_client.params import (
    DEFAULT_WORKER_START_PARAMS,
    AutoscalerOptions,
    Cluster,
    ClusterSpec,
    ConfigMapVolume,
    EnvironmentVariables,
    HeadNodeSpec,
    ServiceType,
    Template,
    Toleration,
    TolerationEffect,
    TolerationOperation,
    WorkerNodeSpec,
)
from raykeeper.errors import Misconfigured
from support.api_processes import ApiProcess, api_server_on
from support.operating import operating

T = TypeVar("T")
IMAGE = "rayproject/ray:2.46.0-py310"


async def done(work: Callable[..., T], *arguments: Any, **named: Any) -> T:
    return await asyncio.to_thread(work, *arguments, **named)


@pytest.fixture(scope="module")
def server(ray_crds: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with api_server_on(ray_crds, tmp_path_factory.mktemp("apiserver"), "--auth=none") as process:
        yield process


@pytest.fixture
def apis(server: ApiProcess) -> KubeRayAPIs:
    return KubeRayAPIs(f"http://{LOOPBACK}:{server.ports.http}/", wait_interval=1)


def a_cluster(namespace: str, **spec: Any) -> Cluster:
    volume = ConfigMapVolume("code-sample", "/home/ray/samples", "ray-job-code-sample", {"sample.py": "sample.py"})
    environment = EnvironmentVariables(key_value={"key": "value"})
    head = HeadNodeSpec(
        compute_template="default-template",
        ray_start_params={"metrics-export-port": "8080", "num-cpus": "0"},
        image=IMAGE,
        service_type=ServiceType.ClusterIP,
        volumes=[volume],
        environment=environment,
        image_pull_policy="Always",
    )
    worker = WorkerNodeSpec(
        group_name="small",
        compute_template="default-template",
        replicas=1,
        min_replicas=1,
        max_replicas=1,
        ray_start_params=DEFAULT_WORKER_START_PARAMS,
        image=IMAGE,
        volumes=[volume],
        environment=environment,
        image_pull_policy="Always",
    )
    return Cluster("test", namespace, "boris", "2.46.0", ClusterSpec(head, [worker], **spec))


def test_templates_are_made_found_listed_and_deleted(apis: KubeRayAPIs, namespace: str) -> None:
    template = Template(
        name="default-template",
        namespace=namespace,
        cpu=2,
        memory=8,
        gpu=1,
        gpu_accelerator="nvidia.com/gpu",
        extended_resources={"vpc.amazonaws.com/efa": 32},
        tolerations=[Toleration("blah1", TolerationOperation.Exists, TolerationEffect.NoExecute)],
        node_selector={"nvidia.com/gpu.product": "NVIDIA-A100-80GB-PCIe"},
    )
    assert apis.list_compute_templates_namespace(namespace) == (200, None, [])
    assert apis.create_compute_template(template) == (200, None)
    status, problem = apis.create_compute_template(template)
    assert status == 409
    assert "already exists" in str(problem)
    assert apis.get_compute_template(namespace, "default-template") == (200, None, template)
    assert apis.list_compute_templates_namespace(ns=namespace) == (200, None, [template])
    status, problem, everywhere = apis.list_compute_templates()
    assert (status, problem) == (200, None)
    assert template in (everywhere or [])
    assert apis.delete_compute_template(ns=namespace, name="default-template") == (200, None)
    status, problem = apis.delete_compute_template(ns=namespace, name="default-template")
    assert status == 404
    assert problem


@pytest.mark.usefixtures("kwok")
async def test_clusters_are_made_found_awaited_and_deleted(
    apis: KubeRayAPIs, ray_crds: ControlPlane, namespace: str
) -> None:
    cluster = a_cluster(namespace)
    status, problem = await done(apis.create_cluster, cluster)
    assert status == 500  # as KubeRay's server answers where there is no such template
    assert "default-template" in str(problem)
    await done(apis.create_compute_template, Template("default-template", namespace, cpu=2, memory=4))
    assert await done(apis.list_clusters_namespace, namespace) == (200, None, [])
    assert await done(apis.create_cluster, cluster) == (200, None)
    assert await done(apis.get_cluster_status, namespace, "test") == (200, None, "creating")
    status, problem = await done(apis.wait_cluster_ready, namespace, "test", wait=1)
    assert (status, "is creating after" in str(problem)) == (408, True)
    async with operating(ray_crds.admin_kubeconfig, namespace):
        assert await done(apis.wait_cluster_ready, ns=namespace, name="test", wait=120) == (200, None)
    endpoint = f"test-head-svc.{namespace}.svc.cluster.local:8265"
    assert await done(apis.get_cluster_endpoints, namespace, "test") == (200, None, endpoint)
    status, problem, found = await done(apis.get_cluster, namespace, "test")
    assert (status, problem) == (200, None)
    assert found is not None
    assert found.annotations is not None
    assert list(found.annotations) == ["ray.io/creation-timestamp"]
    assert found.to_dict() == {**cluster.to_dict(), "annotations": found.annotations}
    assert found.events
    for listed in (await done(apis.list_clusters), await done(apis.list_clusters_namespace, namespace)):
        assert [one.name for one in listed[2] or [] if one.namespace == namespace] == ["test"]
    assert await done(apis.delete_cluster, namespace, "test") == (200, None)


async def test_an_autoscaler_is_asked_for_by_its_options(
    apis: KubeRayAPIs, ray_crds: ControlPlane, namespace: str
) -> None:
    await done(apis.create_compute_template, Template("default-template", namespace, cpu=2, memory=4))
    options = AutoscalerOptions(idle_tmout=30, cpus="500m", memory="1Gi")
    assert await done(apis.create_cluster, a_cluster(namespace, autoscaling_options=options)) == (200, None)
    _, _, found = await done(apis.get_cluster, namespace, "test")
    assert found is not None
    assert found.cluster_spec.autoscaling_options == options
    made = ray_crds.admin.get(f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters/test")
    assert made["spec"]["enableInTreeAutoscaling"] is True


def test_what_is_not_there_is_said_with_the_servers_own_words(apis: KubeRayAPIs, namespace: str) -> None:
    for answer in (
        apis.get_cluster(namespace, "nope"),
        apis.get_cluster_status(namespace, "nope"),
        apis.get_cluster_endpoints(namespace, "nope"),
        apis.get_compute_template(namespace, "nope"),
        apis.get_job_info(namespace, "nope", "sid"),
        apis.get_job_log(namespace, "nope", "sid"),
        apis.list_job_info(namespace, "nope"),
    ):
        assert (answer[0], answer[2]) == (404, None), answer
        assert "nope" in str(answer[1])
    assert apis.wait_cluster_ready(namespace, "nope")[0] == 404
    for order in (apis.stop_ray_job, apis.delete_ray_job):
        assert order(namespace, "nope", "sid")[0] == 404


def test_names_cannot_lead_to_another_path(apis: KubeRayAPIs, namespace: str) -> None:
    for name in ("../compute_templates", "a/b", "a?limit=1", "..", "a%2Fb", "ü"):
        status, problem, found = apis.get_cluster(namespace, name)
        assert found is None
        assert status != 200, (name, problem)


def test_a_token_is_sent_as_it_is(ray_crds: ControlPlane, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cr3t-s3cr3t-s3cr3t")
    with api_server_on(ray_crds, tmp_path, "--auth=token", f"--auth-token-file={tmp_path / 'token'}") as server:
        url = f"http://{LOOPBACK}:{server.ports.http}"
        for token in ("s3cr3t-s3cr3t-s3cr3t", "Bearer s3cr3t-s3cr3t-s3cr3t"):
            assert KubeRayAPIs(server_url=url, token=token).list_clusters()[0] == 200
        # KubeRay's keeps the first token in the module, so that others without one would have it, too.
        for apis in (KubeRayAPIs(url), KubeRayAPIs(url, token="wrong")):
            status, problem, _ = apis.list_clusters()
            assert (status, "token" in str(problem)) == (401, True)


class Elsewhere(BaseHTTPRequestHandler):
    """Something that is no API server."""

    answers: dict[str, tuple[int, bytes]] = {  # noqa: RUF012 - read only
        "/apis/v1/clusters": (200, b"<html>"),
        "/apis/v1/compute_templates": (200, b"[]"),
        "/apis/v1/namespaces/a/clusters": (302, b""),
        "/apis/v1/namespaces/a/clusters/b": (502, b"<html>Bad Gateway</html>"),
    }
    seen: list[str] = []  # noqa: RUF012 - emptied by the fixture

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.seen.append(path)
        status, body = self.answers.get(path, (418, b""))
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def elsewhere() -> Iterator[KubeRayAPIs]:
    Elsewhere.seen.clear()
    with ThreadingHTTPServer((LOOPBACK, 0), Elsewhere) as listener:
        thread = Thread(target=listener.serve_forever)
        thread.start()
        try:
            yield KubeRayAPIs(f"http://{LOOPBACK}:{listener.server_port}", token="secret")
        finally:
            listener.shutdown()
            thread.join()


def test_what_is_no_api_server_is_named(elsewhere: KubeRayAPIs) -> None:
    with pytest.raises(Unavailable, match="not JSON; is this an API server"):
        elsewhere.list_clusters()
    with pytest.raises(Unavailable, match="not a JSON object"):
        elsewhere.list_compute_templates()
    assert elsewhere.get_cluster("a", "b") == (502, "<html>Bad Gateway</html>", None)
    assert elsewhere.get_cluster("a", "c") == (418, "I'm a Teapot", None)


def test_a_token_does_not_follow_a_redirect(elsewhere: KubeRayAPIs) -> None:
    assert elsewhere.list_clusters_namespace("a") == (302, "Found", None)
    assert Elsewhere.seen == ["/apis/v1/namespaces/a/clusters"]


def test_a_server_that_cannot_be_reached_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="refused"):
        KubeRayAPIs(f"http://{LOOPBACK}:{free_port()}").list_clusters()
    with pytest.raises(Misconfigured, match="server_url='file:///etc/passwd'"):
        KubeRayAPIs("file:///etc/passwd")
