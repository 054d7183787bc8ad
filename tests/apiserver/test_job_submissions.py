"""Jobs that are given to a real Ray head, beside what KubeRay's API server answered about the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.waiting import PATIENCE_SECONDS, wait_until
from raykeeper.client.python_apiserver_client import KubeRayAPIs
from raykeeper.client.python_apiserver_client.params import Cluster, ClusterSpec, HeadNodeSpec, RayJobRequest, Template
from support.answer_differences import Review, differences, read_reviewed
from support.api_access import call
from support.api_processes import ApiProcess, api_server_on
from support.api_scenarios import PROTOCOLS, Protocol
from support.head_scenarios import ANSWERS, SCENARIO, ReachableHead, a_reachable_head

pytestmark = pytest.mark.timeout(600)
REVIEWED = Path(__file__).parent / "reviewed_head_differences.yaml"
SUBMIT = "proto.RayJobSubmissionService.SubmitRayJob"


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReachableHead]:
    with a_reachable_head(tmp_path_factory.mktemp("ray")) as head:
        yield head


@pytest.fixture(scope="module")
def server(ray_crds: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    folder = tmp_path_factory.mktemp("apiserver")
    with api_server_on(ray_crds, folder, "--auth=none", "--use-kubernetes-proxy") as process:
        yield process


@pytest.fixture(scope="module")
def review(ray_crds: ControlPlane, control_plane: ControlPlane, server: ApiProcess, head: ReachableHead) -> Review:
    found = Review(read_reviewed(REVIEWED))
    for protocol in PROTOCOLS:
        theirs: dict[str, Any] = yaml.safe_load((ANSWERS / f"{SCENARIO}.{protocol}.yaml").read_text())
        ours = head.tell(ray_crds, server.ports, protocol, "ours")
        assert theirs.keys() == ours.keys()
        for step, answer in theirs.items():
            found.look_at(differences(f"{protocol}/{step}", answer, ours[step]))
    return found


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_answers_are_kuberays_but_for_reviewed_differences(protocol: Protocol, review: Review) -> None:
    assert [str(one) for one in review.unexplained if one.request.startswith(protocol)] == []


def test_no_reviewed_difference_is_out_of_date(review: Review) -> None:
    assert review.unused() == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_resources_of_an_entrypoint_end_no_process(protocol: Protocol, server: ApiProcess, review: Review) -> None:
    """KubeRay's server ends with them: it writes into a map that it never made."""
    resources = {"entrypoint": "true", "entrypointResources": {"special": "many"}}
    request = {"namespace": "default", "clustername": "missing", "jobsubmission": resources}
    assert call(server.ports, protocol, SUBMIT, request, {}).code == "NOT_FOUND"
    assert server.process.poll() is None


def test_kuberays_python_client_submits_watches_stops_and_deletes_jobs(
    ray_crds: ControlPlane, server: ApiProcess, head: ReachableHead, namespace: str
) -> None:
    """KubeRay's own test of job submission, in our words."""
    apis = KubeRayAPIs(f"http://{LOOPBACK}:{server.ports.http}")
    apis.create_compute_template(Template("default-template", namespace, cpu=2, memory=4))
    spec = ClusterSpec(HeadNodeSpec("default-template", "rayproject/ray:2.46.0-py310"))
    assert apis.create_cluster(Cluster("test-job", namespace, "boris", "2.46.0", spec)) == (200, None)
    head.lead(ray_crds, server.ports, namespace)
    try:
        assert apis.wait_cluster_ready(namespace, "test-job", wait=30) == (200, None)
        runtime_env = "env_vars:\n  counter_name: test_counter\n"
        request = RayJobRequest("echo $counter_name; sleep 300", runtime_env=runtime_env, num_cpu=0.5)
        status, problem, sid = apis.submit_job(namespace, "test-job", request)
        assert (status, problem) == (200, None)
        assert sid is not None

        def state() -> str:
            _, _, info = apis.get_job_info(ns=namespace, name="test-job", sid=sid)
            return info.status if info else ""

        has_printed = lambda: "test_counter" in (apis.get_job_log(namespace, "test-job", sid)[2] or "")  # noqa: E731
        wait_until("the job runs", lambda: state() == "RUNNING", PATIENCE_SECONDS)
        wait_until("the job has printed", has_printed, PATIENCE_SECONDS)
        status, problem, infos = apis.list_job_info(ns=namespace, name="test-job")
        assert (status, problem) == (200, None)
        assert [info.entrypoint for info in infos or [] if info.submission_id == sid] == [request.entrypoint]
        assert apis.stop_ray_job(namespace, "test-job", sid) == (200, None)
        wait_until("the job has stopped", lambda: state() == "STOPPED", PATIENCE_SECONDS)
        assert apis.delete_ray_job(namespace, "test-job", sid) == (200, None)
        status, problem, _ = apis.get_job_info(namespace, "test-job", sid)
        assert (status == 200, problem is None) == (False, False)
    finally:
        ray_crds.admin.delete(f"/api/v1/nodes/{namespace}")
