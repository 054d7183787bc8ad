"""An admission webhook that is slow or down stops neither the lease nor the clusters of other namespaces."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.fixtures import make_namespace
from bed.kwok import Kwok
from bed.ports import free_port
from bed.waiting import wait_until
from support.operator_processes import OperatorProcess, Operators, operators_of
from support.webhooks import WEBHOOK_TIMEOUT_SECONDS, slow_webhook, webhook_that_is_down

SLOW, QUICK = "slow", "quick"
WORKERS = 100
WEBHOOK_SECONDS = 25.0
SLOW_CLUSTERS = 24
"""More than there are workers."""
ASKED_AT_ONCE = 40
"""Pods that are tried in the first seconds of an outage, before pauses grow."""


@pytest.fixture(scope="module")
def plane(own_control_plane: ControlPlane) -> ControlPlane:
    install_ray_crds(own_control_plane)
    Kwok(own_control_plane).up(nodes=2)
    for namespace in (SLOW, QUICK):
        make_namespace(own_control_plane, namespace)
    return own_control_plane


@pytest.fixture
def operators(plane: ControlPlane, tmp_path: Path) -> Iterator[Operators]:
    with operators_of(plane, tmp_path) as operators:
        yield operators
    for namespace in (SLOW, QUICK):
        plane.kubectl("delete", "rayclusters", "--all", "-n", namespace)
    plane.kubectl("delete", "leases", "--all-namespaces", "--field-selector=metadata.name=ray-operator-leader")


def make_cluster(plane: ControlPlane, namespace: str, name: str, workers: int = 0) -> None:
    template = {"spec": {"containers": [{"name": "ray", "image": "ray"}]}}
    group = {"groupName": "many", "replicas": workers, "maxReplicas": workers, "template": template}
    spec = {"headGroupSpec": {"template": template}, "workerGroupSpecs": [group] if workers else []}
    body = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": name}, "spec": spec}
    plane.admin.post(f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters", body)


def pods(plane: ControlPlane, namespace: str, cluster: str) -> list[Any]:
    path = f"/api/v1/namespaces/{namespace}/pods?labelSelector=ray.io/cluster={cluster}"
    return list(plane.admin.get(path)["items"])


def status(plane: ControlPlane, namespace: str, name: str) -> dict[str, Any]:
    return dict(plane.admin.get(f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters/{name}").get("status", {}))


def condition(plane: ControlPlane, namespace: str, name: str, kind: str) -> dict[str, Any] | None:
    conditions = status(plane, namespace, name).get("conditions", [])
    return next((one for one in conditions if one["type"] == kind), None)


def leading(operators: Operators, *flags: str) -> OperatorProcess:
    operator = operators.start(*flags)
    operator.wait_for("leading")
    return operator


def test_the_lease_is_kept_and_other_clusters_go_on_while_creates_take_25_seconds(
    plane: ControlPlane, operators: Operators, tmp_path: Path
) -> None:
    operator = leading(operators)
    with slow_webhook(plane, SLOW, WEBHOOK_SECONDS, tmp_path) as webhook:
        webhook.seconds = 0.0
        make_cluster(plane, SLOW, "large", WORKERS)
        wait_until("the first workers are asked about", lambda: webhook.asked > 4)
        webhook.seconds = WEBHOOK_SECONDS
        wait_until("a whole batch waits for the webhook", lambda: webhook.asked >= 1 + 1 + 2 + 4 + 8 + 16)
        began = time.monotonic()
        make_cluster(plane, QUICK, "other", workers=3)
        wait_until("the other cluster has its pods", lambda: len(pods(plane, QUICK, "other")) == 4)
        assert time.monotonic() - began < WEBHOOK_SECONDS, "the other cluster waited for the webhook"
        time.sleep(WEBHOOK_SECONDS)  # longer than the lease lives without being renewed
        assert operator.line("leadership lost, standing by") is None
        assert operator.metric("leader_election_master_status", name="ray-operator-leader") == 1
        assert operator.ask("/readyz")[0] == 200
        began = time.monotonic()
        assert operator.stop() == 0
        assert time.monotonic() - began < WEBHOOK_SECONDS, "it waited for the webhook"
        assert operators.lease("default")["spec"]["holderIdentity"] == ""


@dataclass(frozen=True)
class Trouble:
    """What a webhook does to the clusters of its namespace, and how soon those of another are ready all the same."""

    webhook_seconds: float
    bound_seconds: float
    flags: tuple[str, ...] = ()


USUAL_SECONDS = 5.0
"""What a cluster without workers takes on a busy machine; on an idle one it is a second."""
TROUBLES = [
    pytest.param(Trouble(WEBHOOK_SECONDS, USUAL_SECONDS), id="25 seconds a pod"),
    pytest.param(Trouble(2 * WEBHOOK_TIMEOUT_SECONDS, USUAL_SECONDS), id="never an answer"),
    pytest.param(Trouble(WEBHOOK_SECONDS, USUAL_SECONDS, ("--reconcile-concurrency=1",)), id="one worker"),
]


@pytest.mark.parametrize("trouble", TROUBLES)
def test_many_clusters_that_wait_for_a_webhook_leave_the_workers_to_other_namespaces(
    plane: ControlPlane, operators: Operators, tmp_path: Path, trouble: Trouble
) -> None:
    operator = leading(operators, *trouble.flags)
    usual = seconds_to_ready(plane, "before")
    with slow_webhook(plane, SLOW, trouble.webhook_seconds, tmp_path) as webhook:
        for number in range(SLOW_CLUSTERS):
            make_cluster(plane, SLOW, f"slow-{number}", WORKERS)
        wait_until("the first heads are asked about", lambda: webhook.asked)
        beside = [seconds_to_ready(plane, f"beside-{number}") for number in range(5)]
        assert operator.line("leadership lost, standing by") is None
        operator.stop()
    print(f"ready in {usual:.1f} s usually; beside: {', '.join(f'{seconds:.1f}' for seconds in beside)} s")
    assert max(beside) < max(2 * usual, trouble.bound_seconds)


def seconds_to_ready(plane: ControlPlane, name: str) -> float:
    began = time.monotonic()
    make_cluster(plane, QUICK, name)
    wait_until(f"{name} is ready", lambda: status(plane, QUICK, name).get("state") == "ready")
    return time.monotonic() - began


def test_a_cluster_that_waits_for_a_webhook_that_is_down_says_so_and_goes_on_when_it_is_up(
    plane: ControlPlane, operators: Operators
) -> None:
    leading(operators)
    with webhook_that_is_down(plane, SLOW, free_port()):
        make_cluster(plane, SLOW, "waiting")
        failure = wait_until(
            "the condition tells", lambda: condition(plane, SLOW, "waiting", "ReplicaFailure"), timeout=60
        )
        assert failure is not None
        assert failure["reason"] == "FailedCreateHeadPod"
        assert 'failed calling webhook "pods.example.com"' in failure["message"]
        make_cluster(plane, QUICK, "beside")
        wait_until("the other cluster has its head", lambda: pods(plane, QUICK, "beside"))
        path = f"/apis/events.k8s.io/v1/namespaces/{SLOW}/events?fieldSelector=reason=FailedToCreateHeadPod"
        wait_until("an Event tells", lambda: plane.admin.get(path)["items"])
    wait_until("the head is made", lambda: pods(plane, SLOW, "waiting"))


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(20.0, id="twenty seconds"),
        pytest.param(300.0, id="five minutes", marks=[pytest.mark.soak, pytest.mark.timeout(900)]),
    ],
)
def test_running_clusters_shrink_and_wait_while_a_webhook_is_down_and_mend_themselves_once_it_is_up(
    plane: ControlPlane, operators: Operators, seconds: float
) -> None:
    operator = leading(operators)
    for name in ("shrinks", "loses"):
        make_cluster(plane, SLOW, name, workers=3)
    for name in ("shrinks", "loses"):
        becomes_ready(plane, name, workers=3)
    with webhook_that_is_down(plane, SLOW, free_port()):
        began, refused = time.monotonic(), refusals(plane)
        lost = worker_names(plane, "loses")[0]
        plane.admin.delete(f"/api/v1/namespaces/{SLOW}/pods/{lost}")
        says_what_it_waits_for(plane, "loses")
        scale(plane, "shrinks", 1)
        wait_until("surplus workers are gone", lambda: len(worker_names(plane, "shrinks")) == 1)
        scale(plane, "shrinks", 2)
        says_what_it_waits_for(plane, "shrinks")
        make_cluster(plane, QUICK, "elsewhere", workers=1)
        wait_until("another namespace goes on", lambda: len(pods(plane, QUICK, "elsewhere")) == 2)
        time.sleep(max(0.0, seconds - (time.monotonic() - began)))  # the outage lasts so long
        scale(plane, "shrinks", 0)
        wait_until("the last worker is gone", lambda: not worker_names(plane, "shrinks"))
        scale(plane, "shrinks", 2)
        says_what_it_waits_for(plane, "shrinks")
        assert refusals(plane) - refused <= ASKED_AT_ONCE + seconds / 2, (
            "a server in trouble is not asked ever more often"
        )
        assert operator.line("leadership lost, standing by") is None
    for name, workers in {"shrinks": 2, "loses": 3}.items():
        becomes_ready(plane, name, workers)
        told = condition(plane, SLOW, name, "ReplicaFailure")
        assert told is None or told["status"] == "False"
    assert lost not in worker_names(plane, "loses")


def says_what_it_waits_for(plane: ControlPlane, name: str) -> None:
    """Return once the conditions tell which write the webhook stops; the state stays as KubeRay's would."""

    def told() -> bool:
        failure = condition(plane, SLOW, name, "ReplicaFailure")
        return (
            failure is not None and failure["status"] == "True" and 'webhook "pods.example.com"' in failure["message"]
        )

    wait_until(f"{name} tells", told)
    assert not is_ready(plane, name)
    assert status(plane, SLOW, name)["state"] == "ready"


def becomes_ready(plane: ControlPlane, name: str, workers: int) -> None:
    wait_until(f"{name} is whole", lambda: len(worker_names(plane, name)) == workers)
    wait_until(f"{name} is ready", lambda: is_ready(plane, name))


def is_ready(plane: ControlPlane, name: str) -> bool:
    ready = condition(plane, SLOW, name, "Ready")
    return ready is not None and ready["status"] == "True"


def worker_names(plane: ControlPlane, cluster: str) -> list[str]:
    """Of workers that are not going."""
    metadata = [pod["metadata"] for pod in pods(plane, SLOW, cluster)]
    return [one["name"] for one in metadata if "-worker-" in one["name"] and "deletionTimestamp" not in one]


def scale(plane: ControlPlane, name: str, workers: int) -> None:
    path = f"/apis/ray.io/v1/namespaces/{SLOW}/rayclusters/{name}"
    group = plane.admin.get(path)["spec"]["workerGroupSpecs"][0] | {"replicas": workers}
    plane.admin.patch(path, {"spec": {"workerGroupSpecs": [group]}})


def refusals(plane: ControlPlane) -> int:
    """How many writes the API server has refused because it could not ask the webhook."""
    text = plane.admin.raw("GET", "/metrics").decode()
    lines = [line for line in text.splitlines() if line.startswith("apiserver_admission_webhook_rejection_count{")]
    return sum(int(float(line.rpartition(" ")[2])) for line in lines if 'name="pods.example.com"' in line)
