"""What the real API server makes of objects of the `ray.io` kinds, and what people see of them through kubectl."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest

from bed.binaries import KUBERNETES
from bed.control_plane import ControlPlane
from bed.errors import BedError
from crds.field_tables import TABLES
from crds.manifests import EVERY_FIELD, MISSING, change, collection, manifest
from raykeeper.api.crd.kinds import KINDS
from raykeeper.api.crd.kubernetes import SLICE_FILE
from raykeeper.api.meta import JSON, Object
from raykeeper.api.raycluster import RayCluster
from raykeeper.api.structs import RayObject
from tools.kubernetes_types import served_slice

STRUCTS = {kind.resource.kind: kind.struct for kind in KINDS}

DEFAULTS: dict[str, dict[str, Any]] = {
    "RayCluster": {
        "workerGroupSpecs.0.replicas": 0,
        "workerGroupSpecs.0.minReplicas": 0,
        "workerGroupSpecs.0.maxReplicas": 2147483647,
        "workerGroupSpecs.0.numOfHosts": 1,
        "workerGroupSpecs.0.priority": 0,
        "networkPolicy.mode": "DenyAll",
        "headGroupSpec.template.spec.containers.0.ports.0.protocol": "TCP",
    },
    "RayJob": {
        "submissionMode": "K8sJobMode",
        "backoffLimit": 0,
        "ttlSecondsAfterFinished": 0,
        "deletionStrategy.deletionRules.0.condition.ttlSeconds": 0,
        "rayClusterSpec.workerGroupSpecs.0.numOfHosts": 1,
    },
    "RayService": {"upgradeStrategy.clusterUpgradeOptions.maxSurgePercent": 100},
    "RayCronJob": {"jobTemplate.submissionMode": "K8sJobMode"},
}
PARENTS: dict[str, dict[str, Any]] = {
    "RayCluster": {
        "networkPolicy": {},
        "headGroupSpec.template.spec.containers.0.ports": [{"containerPort": 6379}],
    },
    "RayJob": {"deletionStrategy.deletionRules": [{"policy": "DeleteSelf", "condition": {"jobStatus": "FAILED"}}]},
    "RayService": {
        "upgradeStrategy.clusterUpgradeOptions": {
            "stepSizePercent": 10,
            "intervalSeconds": 5,
            "gatewayClassName": "istio",
        }
    },
    "RayCronJob": {},
}
"""What must be there for a default to be filled in below it."""


def at(value: Any, path: str) -> Any:
    for step in path.split("."):
        value = value[int(step)] if step.isdigit() else value[step]
    return value


@pytest.mark.parametrize("item", EVERY_FIELD, ids=lambda item: f"{item['kind']}-{item['metadata']['name']}")
def test_a_manifest_with_every_field_comes_back_unchanged(ray_crds: ControlPlane, namespace: str, item: JSON) -> None:
    objects = collection(item["kind"], namespace)
    ray_crds.admin.post(f"{objects}?fieldValidation=Strict", item)
    assert ray_crds.admin.get(f"{objects}/{item['metadata']['name']}")["spec"] == item["spec"]


@pytest.mark.parametrize("item", EVERY_FIELD, ids=lambda item: f"{item['kind']}-{item['metadata']['name']}")
def test_the_structs_read_what_the_server_returns(ray_crds: ControlPlane, namespace: str, item: JSON) -> None:
    objects = collection(item["kind"], namespace)
    ray_crds.admin.post(objects, item)
    body = ray_crds.admin.raw("GET", f"{objects}/{item['metadata']['name']}")
    struct: Any = STRUCTS[item["kind"]]
    read: RayObject = msgspec.json.decode(body, type=struct)
    assert struct.from_object(msgspec.json.decode(body, type=Object)) == read
    assert without_defaults(msgspec.to_builtins(read)["spec"]) == without_defaults(item["spec"])


def without_defaults(value: Any) -> Any:
    """A spec without what says nothing, which structs do not write: empty maps and lists, false, 0, the defaults."""
    if isinstance(value, dict):
        kept = {key: without_defaults(part) for key, part in value.items()}
        return {
            key: part for key, part in kept.items() if part not in ({}, [], False, "", None, "DenyAll", 2147483647, 1)
        }
    if isinstance(value, list | tuple):
        return [without_defaults(part) for part in value]
    return value


@pytest.mark.parametrize("kind", DEFAULTS)
def test_defaults_are_filled_in_by_the_server(ray_crds: ControlPlane, namespace: str, kind: str) -> None:
    stored = ray_crds.admin.post(collection(kind, namespace), manifest(kind, PARENTS[kind]))
    assert {path: at(stored["spec"], path) for path in DEFAULTS[kind]} == DEFAULTS[kind]


def test_every_default_of_the_tables_is_shown() -> None:
    for kind, inside in {
        "RayCluster": "-",
        "RayJob": ".spec.rayClusterSpec.",
        "RayService": ".spec.rayClusterConfig.",
    }.items():
        lines = TABLES[kind].items()
        wanted = {path for path, facts in lines if "default=" in facts and path.startswith(".spec")}
        shown = {".spec." + re.sub(r"\.\d+", "[]", path) for path in DEFAULTS[kind]}
        assert {path for path in wanted if not path.startswith(inside)} <= shown


def test_nothing_else_is_filled_in(ray_crds: ControlPlane, namespace: str) -> None:
    bare = manifest("RayCluster", {"workerGroupSpecs": MISSING})
    assert ray_crds.admin.post(collection("RayCluster", namespace), bare)["spec"] == bare["spec"]


def test_unknown_fields_are_pruned_and_a_strict_client_is_told(ray_crds: ControlPlane, namespace: str) -> None:
    odd = manifest("RayCluster", {"oddity": 1, "headGroupSpec.template.spec.containers.0.oddity": 1})
    objects = collection("RayCluster", namespace)
    with pytest.raises(BedError, match=r'unknown field \\"spec.headGroupSpec.template.spec.containers\[0\].oddity\\"'):
        ray_crds.admin.post(f"{objects}?fieldValidation=Strict", odd)
    stored = ray_crds.admin.post(f"{objects}?fieldValidation=Ignore", odd)
    assert "oddity" not in json.dumps(stored["spec"])


def test_the_metadata_of_a_template_keeps_what_a_user_may_say(ray_crds: ControlPlane, namespace: str) -> None:
    said = {"labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": ["a/b"], "name": "n", "namespace": "s"}
    from_go = manifest("RayCluster", {"headGroupSpec.template.metadata": said | {"creationTimestamp": None}})
    stored = ray_crds.admin.post(collection("RayCluster", namespace), from_go)
    assert stored["spec"]["headGroupSpec"]["template"]["metadata"] == said


def test_server_side_apply_merges_containers_by_name(ray_crds: ControlPlane, namespace: str) -> None:
    def apply(manager: str, containers: list[JSON]) -> None:
        item = manifest(
            "RayCluster", {"headGroupSpec.template.spec.containers": containers, "workerGroupSpecs": MISSING}
        )
        arguments = ["apply", "--server-side", f"--field-manager={manager}", f"--namespace={namespace}", "-f-"]
        ray_crds.kubectl(*arguments, stdin=json.dumps(item))

    apply("user", [{"name": "ray", "image": "ray:1"}])
    apply("injector", [{"name": "mesh", "image": "mesh:1"}])
    apply("user", [{"name": "ray", "image": "ray:2"}])
    stored = ray_crds.admin.get(f"{collection('RayCluster', namespace)}/thing")
    containers = at(stored, "spec.headGroupSpec.template.spec.containers")
    assert containers == [{"name": "ray", "image": "ray:2"}, {"name": "mesh", "image": "mesh:1"}]


def test_explain_knows_the_fields_of_pods_and_the_prose_of_ours(ray_crds: ControlPlane) -> None:
    containers = ray_crds.kubectl("explain", "raycluster.spec.workerGroupSpecs.template.spec.containers")
    assert re.search(r"livenessProbe\s+<Object>", containers)
    assert re.search(r"name\s+<string> -required-", containers)
    group = ray_crds.kubectl("explain", "raycluster.spec.workerGroupSpecs.numOfHosts")
    assert "Pods of one replica; more than one for accelerators that span hosts." in group


def test_objects_of_the_first_version_are_read_as_the_current_one(ray_crds: ControlPlane, namespace: str) -> None:
    old = manifest("RayCluster", {"headGroupSpec.rayStartParams": {}, "workerGroupSpecs.0.rayStartParams": {}})
    change(old, "spec.rayVersionOfThePast", "1.0")
    old["apiVersion"] = "ray.io/v1alpha1"
    ray_crds.admin.post(collection("RayCluster", namespace, "v1alpha1"), old)
    body = ray_crds.admin.raw("GET", f"{collection('RayCluster', namespace)}/thing")
    cluster = RayCluster.from_object(msgspec.json.decode(body, type=Object))
    assert cluster.spec.worker_group_specs[0].num_of_hosts == 1
    assert "numOfHosts" in json.loads(body)["spec"]["workerGroupSpecs"][0]
    assert "rayVersionOfThePast" not in json.loads(body)["spec"]


@pytest.mark.parametrize("plural", ["rayclusters", "rayjobs", "rayservices"])
def test_the_first_version_warns_that_it_is_deprecated(ray_crds: ControlPlane, plural: str) -> None:
    with pytest.raises(BedError, match=r"v1alpha1 \w+ is deprecated: it gets no new fields .* use ray.io/v1"):
        ray_crds.kubectl("get", f"{plural}.v1alpha1.ray.io", "--warnings-as-errors")


COLUMNS = {
    "RayCluster": "NAME|DESIRED WORKERS|AVAILABLE WORKERS|CPUS|MEMORY|GPUS|TPUS|STATUS|AGE|HEAD POD IP|HEAD SERVICE IP",
    "RayJob": "NAME|JOB STATUS|DEPLOYMENT STATUS|RAY CLUSTER NAME|START TIME|END TIME|AGE",
    "RayService": "NAME|SERVICE STATUS|NUM SERVE ENDPOINTS",
    "RayCronJob": "NAME|SCHEDULE|TIMEZONE|LAST SCHEDULE|AGE|SUSPEND",
}
STATUSES: dict[str, JSON] = {
    "RayCluster": {
        "desiredWorkerReplicas": 3,
        "availableWorkerReplicas": 2,
        "desiredCPU": "5",
        "desiredMemory": "6G",
        "desiredGPU": "7",
        "desiredTPU": "8",
        "state": "ready",
        "head": {"podIP": "10.0.0.1", "serviceIP": "10.0.0.2"},
    },
    "RayJob": {
        "jobStatus": "RUNNING",
        "jobDeploymentStatus": "Running",
        "rayClusterName": "mine",
        "startTime": "2026-01-01T00:00:00Z",
        "endTime": "2026-01-02T00:00:00Z",
    },
    "RayService": {"serviceStatus": "Running", "numServeEndpoints": 4},
    "RayCronJob": {"lastScheduleTime": "2026-01-01T00:00:00Z"},
}
ROWS = {
    "RayCluster": r"thing 3 2 5 6G 7 8 ready \d+s 10.0.0.1 10.0.0.2",
    "RayJob": r"thing RUNNING Running mine 2026-01-01T00:00:00Z 2026-01-02T00:00:00Z \d+s",
    "RayService": r"thing Running 4",
    "RayCronJob": r"thing @daily UTC 2026-01-01T00:00:00Z \d+s true",
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_kubectl_shows_the_columns_of_kuberay(ray_crds: ControlPlane, namespace: str, kind: str) -> None:
    changes = {"timeZone": "UTC", "suspend": True} if kind == "RayCronJob" else {}
    objects = collection(kind, namespace)
    ray_crds.admin.post(objects, manifest(kind, changes))
    ray_crds.admin.patch(f"{objects}/thing/status", {"status": STATUSES[kind]})
    header, row = ray_crds.kubectl("get", kind, "-owide", f"--namespace={namespace}").splitlines()
    assert re.split(r"\s{2,}", header.strip()) == COLUMNS[kind].split("|")
    assert re.fullmatch(ROWS[kind], " ".join(row.split()))


def test_columns_for_the_curious_are_shown_only_when_asked_for(ray_crds: ControlPlane, namespace: str) -> None:
    ray_crds.admin.post(collection("RayCluster", namespace), manifest("RayCluster"))
    header, _ = ray_crds.kubectl("get", "raycluster", f"--namespace={namespace}").splitlines()
    shown = "NAME|DESIRED WORKERS|AVAILABLE WORKERS|CPUS|MEMORY|GPUS|STATUS|AGE"
    assert re.split(r"\s{2,}", header.strip()) == shown.split("|")


def test_get_all_lists_the_ray_kinds(ray_crds: ControlPlane, namespace: str) -> None:
    for kind in COLUMNS:
        ray_crds.admin.post(collection(kind, namespace), manifest(kind))
    listed = ray_crds.kubectl("get", "all", "--output=name", f"--namespace={namespace}").splitlines()
    assert {f"{kind.lower()}.ray.io/thing" for kind in COLUMNS} <= set(listed)


def test_a_status_of_ours_is_accepted_and_kept(ray_crds: ControlPlane, namespace: str) -> None:
    condition = {
        "type": "HeadPodReady",
        "status": "True",
        "reason": "HeadPodRunningAndReady",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 1,
    }
    status = STATUSES["RayCluster"] | {
        "conditions": [condition],
        "lastUpdateTime": None,
        "stateTransitionTimes": {"ready": "2026-01-01T00:00:00Z"},
        "endpoints": {"dashboard": "8265"},
        "observedGeneration": 1,
    }
    objects = collection("RayCluster", namespace)
    stored = ray_crds.admin.post(objects, manifest("RayCluster"))
    kept = ray_crds.admin.request("PUT", f"{objects}/thing/status", stored | {"status": status})
    assert kept["status"] == status
    change(status, "conditions.0.status", "Maybe")
    with pytest.raises(BedError, match="Unsupported value"):
        ray_crds.admin.patch(f"{objects}/thing/status", {"status": status})


def test_the_committed_types_of_kubernetes_are_those_the_server_serves(control_plane: ControlPlane) -> None:
    assert msgspec.json.decode(SLICE_FILE.read_bytes()) == served_slice(control_plane)
    assert control_plane.admin.get("/version")["gitVersion"] == KUBERNETES
