"""Each enum, limit and CEL rule of the CRDs has examples that the real API server accepts and refuses."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from bed.control_plane import ControlPlane
from bed.rest import Refused
from crds.field_tables import TABLES
from crds.manifests import MISSING, collection, manifest

RULE = {"policy": "DeleteSelf", "condition": {"jobStatus": "FAILED"}}
RULES = {"deletionStrategy.deletionRules": [RULE]}
LEGACY = {"deletionStrategy.onSuccess.policy": "DeleteNone", "deletionStrategy.onFailure.policy": "DeleteNone"}
CONDITION = "deletionStrategy.deletionRules.0.condition"
NETWORK_GROUP = {"networkPolicy.workerGroups": [{"groupName": "workers"}]}
UPGRADE = "upgradeStrategy.clusterUpgradeOptions"
UPGRADES = {f"{UPGRADE}.stepSizePercent": 1, f"{UPGRADE}.intervalSeconds": 1, f"{UPGRADE}.gatewayClassName": "istio"}
STEPS = {"stepSizePercent": 1, "intervalSeconds": 1}
POLICIES = ["DeleteCluster", "DeleteWorkers", "DeleteSelf", "DeleteNone"]
MANAGERS = ["ray.io/kuberay-operator", "kueue.x-k8s.io/multikueue"]
NOT_A_MANAGER = "must be either 'ray.io/kuberay-operator' or 'kueue.x-k8s.io/multikueue'"


@dataclass(frozen=True)
class Limited:
    """A field, values that are fine, one that is not, and a part of what the server says to that one."""

    kind: str
    path: str
    good: list[Any]
    bad: Any
    complaint: str
    given: dict[str, Any] = field(default_factory=dict)

    @property
    def table_path(self) -> str:
        return ".spec." + re.sub(r"\.\d+", "[]", self.path)

    def with_value(self, value: Any) -> dict[str, Any]:
        return manifest(self.kind, {**self.given, self.path: value})


def enum(kind: str, path: str, good: list[str], given: dict[str, Any] | None = None) -> Limited:
    return Limited(kind, path, good, "Wrong", 'Unsupported value: \\"Wrong\\"', given or {})


LIMITED = [
    enum("RayCluster", "headGroupSpec.ingressOptions.pathType", ["Exact", "Prefix", "ImplementationSpecific"]),
    enum("RayCluster", "autoscalerOptions.upscalingMode", ["Default", "Aggressive", "Conservative"]),
    enum("RayCluster", "autoscalerOptions.version", ["v1", "v2"]),
    enum("RayCluster", "gcsFaultToleranceOptions.backend", ["redis", "rocksdb"]),
    enum("RayCluster", "gcsFaultToleranceOptions.storage.deletionPolicy", ["DeleteWithCluster", "Retain"]),
    enum("RayCluster", "upgradeStrategy.type", ["Recreate", "None"]),
    enum("RayCluster", "authOptions.mode", ["disabled", "token"]),
    enum("RayCluster", "networkPolicy.mode", ["DenyAll", "DenyAllIngress", "DenyAllEgress"]),
    enum("RayJob", "deletionStrategy.onSuccess.policy", POLICIES, LEGACY),
    enum("RayJob", "deletionStrategy.onFailure.policy", POLICIES, LEGACY),
    enum("RayJob", "deletionStrategy.deletionRules.0.policy", POLICIES, RULES),
    enum("RayJob", f"{CONDITION}.jobStatus", ["SUCCEEDED", "FAILED"], RULES),
    enum("RayJob", f"{CONDITION}.jobDeploymentStatus", ["Failed"], RULES | {f"{CONDITION}.jobStatus": MISSING}),
    enum("RayJob", "retryRayClusterStrategy", ["RecreateRayCluster", "ReuseRayCluster"]),
    enum("RayCronJob", "concurrencyPolicy", ["Allow", "Forbid", "Replace"]),
    Limited("RayCronJob", "startingDeadlineSeconds", [0], -1, "should be greater than or equal to 0"),
    Limited("RayCronJob", "successfulJobsHistoryLimit", [0], -1, "should be greater than or equal to 0"),
    Limited("RayCronJob", "failedJobsHistoryLimit", [0], -1, "should be greater than or equal to 0"),
    Limited("RayCluster", "managedBy", MANAGERS, "someone.example.com", NOT_A_MANAGER),
    Limited("RayJob", "managedBy", MANAGERS, "someone.example.com", NOT_A_MANAGER),
    Limited("RayService", "managedBy", MANAGERS, "someone.example.com", NOT_A_MANAGER),
    Limited("RayJob", "preRunningDeadlineSeconds", [1], 0, "should be greater than or equal to 1"),
    Limited("RayJob", f"{CONDITION}.ttlSeconds", [0], -1, "should be greater than or equal to 0", RULES),
    Limited("RayJob", "deletionStrategy.deletionRules", [[RULE]], [], "should have at least 1 items"),
    Limited("RayService", "rayClusterDeletionDelaySeconds", [0], -1, "should be greater than or equal to 0"),
    Limited("RayCronJob", "timeZone", ["UTC"], "", "should be at least 1 chars long"),
    Limited(
        "RayJob",
        "deletionStrategy",
        [{"deletionRules": [RULE]}],
        {"onSuccess": {}},
        "needs either deletionRules, or both",
    ),
    Limited(
        "RayJob",
        "deletionStrategy",
        [{"onSuccess": {}, "onFailure": {}}],
        {"onSuccess": {}, "onFailure": {}, "deletionRules": [RULE]},
        "deletionRules cannot be used together with onSuccess or onFailure",
    ),
    Limited(
        "RayJob",
        CONDITION,
        [{"jobStatus": "FAILED"}],
        {"jobStatus": "FAILED", "jobDeploymentStatus": "Failed"},
        "cannot both be set in one condition",
        RULES,
    ),
    Limited("RayJob", CONDITION, [{"jobDeploymentStatus": "Failed"}], {}, "must be set in a condition", RULES),
    Limited(
        "RayService",
        UPGRADE,
        [STEPS | {"gatewayClassName": "istio"}, STEPS | {"httpRouteName": "shop"}],
        STEPS,
        "gatewayClassName or httpRouteName must be set",
    ),
    Limited("RayCluster", "gcsFaultToleranceOptions.storage.size", [1, "1Gi", "1.5G"], "much", "should match"),
    Limited("RayCluster", "workerGroupSpecs.0.replicas", [-1, 2147483647], "two", "must be of type integer"),
    Limited(
        "RayCluster", "workerGroupSpecs.0.maxReplicas", [2**31 - 1], 2**31, "must be of type integer with format int32"
    ),
]

UNLIMITED = [
    ("RayJob", "submissionMode", "Typo"),
    ("RayService", "upgradeStrategy.type", "Typo"),
    ("RayCluster", "headGroupSpec.serviceType", "Typo"),
    ("RayCluster", "autoscalerOptions.imagePullPolicy", "Typo"),
    ("RayCluster", "headGroupSpec.template.spec.restartPolicy", "Typo"),
    ("RayCluster", "workerGroupSpecs.0.minReplicas", -1),
    ("RayJob", "activeDeadlineSeconds", 0),
    ("RayJob", "rayClusterSpec", MISSING),
    ("RayCronJob", "schedule", "never"),
]
"""What KubeRay's CRDs accept although its operator does not; ours must not be stricter."""

REQUIRED = [
    ("RayCluster", "headGroupSpec", {}),
    ("RayCluster", "headGroupSpec.template", {}),
    ("RayCluster", "headGroupSpec.template.spec.containers", {}),
    ("RayCluster", "workerGroupSpecs.0.groupName", {}),
    ("RayCluster", "workerGroupSpecs.0.template", {}),
    ("RayCluster", "networkPolicy.workerGroups.0.groupName", NETWORK_GROUP),
    ("RayJob", "deletionStrategy.deletionRules.0.policy", RULES),
    ("RayJob", "deletionStrategy.deletionRules.0.condition", RULES),
    ("RayService", "rayClusterConfig", {}),
    ("RayService", f"{UPGRADE}.stepSizePercent", UPGRADES),
    ("RayService", f"{UPGRADE}.intervalSeconds", UPGRADES),
    ("RayCronJob", "schedule", {}),
    ("RayCronJob", "jobTemplate", {}),
]

IMMUTABLE = [
    ("RayCluster", "managedBy", *MANAGERS, "the managedBy field is immutable"),
    ("RayJob", "managedBy", *MANAGERS, "the managedBy field is immutable"),
    ("RayService", "managedBy", *MANAGERS, "the managedBy field is immutable"),
    ("RayCluster", "gcsFaultToleranceOptions.backend", "redis", "rocksdb", "backend is immutable"),
]


def try_out(plane: ControlPlane, item: dict[str, Any]) -> None:
    """Have the server judge a manifest without keeping it."""
    plane.admin.post(f"{collection(item['kind'], 'default')}?dryRun=All&fieldValidation=Strict", item)


@pytest.mark.parametrize("case", LIMITED, ids=lambda case: f"{case.kind}.{case.path}")
def test_a_limit_lets_good_values_pass_and_refuses_others(ray_crds: ControlPlane, case: Limited) -> None:
    for value in case.good:
        try_out(ray_crds, case.with_value(value))
    with pytest.raises(Refused, match=re.escape(case.complaint)) as refusal:
        try_out(ray_crds, case.with_value(case.bad))
    assert refusal.value.status == 422


@pytest.mark.parametrize(("kind", "path", "value"), UNLIMITED)
def test_what_kuberays_crds_accept_is_accepted(ray_crds: ControlPlane, kind: str, path: str, value: Any) -> None:
    try_out(ray_crds, manifest(kind, {path: value}))


@pytest.mark.parametrize(("kind", "path", "given"), REQUIRED)
def test_a_required_field_must_be_there(ray_crds: ControlPlane, kind: str, path: str, given: dict[str, Any]) -> None:
    try_out(ray_crds, manifest(kind, given))
    with pytest.raises(Refused, match="Required value"):
        try_out(ray_crds, manifest(kind, {**given, path: MISSING}))


@pytest.mark.parametrize(("kind", "path", "first", "second", "complaint"), IMMUTABLE)
def test_an_immutable_field_can_be_set_once(
    ray_crds: ControlPlane, namespace: str, kind: str, path: str, first: str, second: str, complaint: str
) -> None:
    objects = collection(kind, namespace)
    ray_crds.admin.post(objects, manifest(kind))
    ray_crds.admin.patch(f"{objects}/thing", {"spec": manifest(kind, {path: first})["spec"]})
    with pytest.raises(Refused, match=complaint):
        ray_crds.admin.patch(f"{objects}/thing", {"spec": manifest(kind, {path: second})["spec"]})


@pytest.mark.parametrize("kind", ["RayCluster", "RayJob", "RayService", "RayCronJob"])
def test_an_object_without_a_spec_is_accepted_as_by_kuberay(ray_crds: ControlPlane, kind: str) -> None:
    try_out(ray_crds, {key: part for key, part in manifest(kind).items() if key != "spec"})


def test_every_limit_of_the_tables_has_an_example() -> None:
    shown = {(case.kind, case.table_path) for case in LIMITED}
    assert limits_of("RayCluster", r"enum=|rules=|minimum=|min\w+=") - shown == set()
    assert limits_of("RayJob", r"enum=|rules=|minimum=|min\w+=", inside=".spec.rayClusterSpec.") - shown == set()
    assert limits_of("RayService", r"enum=|rules=|minimum=|min\w+=", inside=".spec.rayClusterConfig.") - shown == set()
    assert limits_of("RayCronJob", r"enum=|rules=|minimum=|min\w+=", inside=".spec.jobTemplate.") - shown == set()


def test_every_required_field_of_the_tables_has_an_example() -> None:
    shown = {(kind, ".spec." + re.sub(r"\.\d+", "[]", path)) for kind, path, _ in REQUIRED}
    wanted = limits_of("RayCluster", r"required(?! default)") | limits_of("RayJob", "required", ".spec.rayClusterSpec.")
    wanted |= limits_of("RayService", "required", ".spec.rayClusterConfig.")
    wanted |= limits_of("RayCronJob", "required", ".spec.jobTemplate.")
    assert wanted - shown == set()


def limits_of(kind: str, pattern: str, inside: str = ".nothing") -> set[tuple[str, str]]:
    """The fields of a spec whose line in the table matches, but for those `inside` a part that another table has."""
    lines = TABLES[kind].items()
    found = {path for path, facts in lines if path.startswith(".spec") and re.search(pattern, facts)}
    return {(kind, path) for path in found if not path.startswith(inside)}
