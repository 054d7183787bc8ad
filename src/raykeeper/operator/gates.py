"""The feature gates of KubeRay 1.7, and how `--feature-gates` switches them. Pure, and cheap to import."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from raykeeper.errors import Misconfigured
from raykeeper.settings.values import parse_switch

FLAG = "--feature-gates"


class Stage(Enum):
    """How settled a feature is; its value switches all gates of the stage at once."""

    ALPHA = "AllAlpha"
    BETA = "AllBeta"


@dataclass(frozen=True)
class GateFacts:
    """One row of the table of gates."""

    name: str
    stage: Stage
    is_on: bool
    """Where nobody says otherwise; KubeRay's default but for RayCronJob, which is off there."""
    meaning: str
    missing: str = ""
    """What this version lacks, so that the gate cannot be turned on; empty where it lacks nothing."""
    needs_kubernetes: tuple[int, int] = (1, 0)
    """The oldest API server that has what the feature rests on."""


class Gate(Enum):
    """Every gate."""

    STATUS_CONDITIONS = GateFacts(
        "RayClusterStatusConditions", Stage.BETA, True, "conditions in the status of a RayCluster"
    )
    RAYJOB_DELETION_POLICY = GateFacts(
        "RayJobDeletionPolicy", Stage.BETA, True, "deletion rules of a RayJob, and worker groups that can be suspended"
    )
    MULTI_HOST_INDEXING = GateFacts(
        "RayMultiHostIndexing", Stage.BETA, True, "pods of multi-host groups that live and die together, with indexes"
    )
    INCREMENTAL_UPGRADE = GateFacts(
        "RayServiceIncrementalUpgrade", Stage.BETA, True, "upgrades of a RayService that move traffic step by step"
    )
    RAYCRONJOB = GateFacts("RayCronJob", Stage.ALPHA, True, "the kind RayCronJob")
    SIDECAR_SUBMITTER_RESTART = GateFacts(
        "SidecarSubmitterRestart",
        Stage.ALPHA,
        False,
        "restarts of a failed submitter sidecar",
        needs_kubernetes=(1, 35),
    )
    NETWORK_POLICY = GateFacts(
        "RayClusterNetworkPolicy",
        Stage.ALPHA,
        False,
        "NetworkPolicies around a RayCluster",
        "this version makes no NetworkPolicies",
    )
    EMBEDDED_GCS_STORAGE = GateFacts(
        "GCSFaultToleranceEmbeddedStorage", Stage.ALPHA, False, "GCS fault tolerance on a volume, without Redis"
    )
    MTLS = GateFacts(
        "RayClusterMTLS",
        Stage.ALPHA,
        False,
        "certificates for the traffic inside a RayCluster",
        "this version issues no certificates",
    )
    HISTORY_SERVER = GateFacts(
        "RayClusterHistoryServer", Stage.ALPHA, False, "a collector for the history server in every Ray pod"
    )
    KUBERNETES_WAS = GateFacts("KubernetesWAS", Stage.ALPHA, False, "gang scheduling by Kubernetes' own workload API")


_GATES = {gate.value.name: gate for gate in Gate}
_STAGES = {stage.value: stage for stage in Stage}


@dataclass(frozen=True)
class FeatureGates:
    """What is on and off; only differences from the defaults are kept."""

    switched: Mapping[Gate, bool] = field(default_factory=dict)

    def is_on(self, gate: Gate) -> bool:
        return self.switched.get(gate, gate.value.is_on)

    def check(self, kubernetes: tuple[int, int]) -> None:
        """Raise `Misconfigured` for a gate that is on and needs a later Kubernetes."""
        for gate in Gate:
            needed = gate.value.needs_kubernetes
            if self.is_on(gate) and kubernetes < needed:
                cause = f"it needs Kubernetes {_dotted(needed)}, and the API server is {_dotted(kubernetes)}"
                raise Misconfigured(FLAG, f"{gate.value.name}=true", cause)


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def parse_gates(text: str) -> FeatureGates:
    """The gates after `A=true,B=false`. Raises `Misconfigured` naming the gate that is unknown or cannot be on.

    A gate named by itself beats the one of its whole stage, wherever they stand, as in Kubernetes.
    """
    single: dict[Gate, bool] = {}
    staged: dict[Gate, bool] = {}
    for name, is_on in _pairs(text):
        if name in _STAGES:
            staged |= {gate: is_on for gate in Gate if gate.value.stage is _STAGES[name]}
        else:
            single[_gate(name)] = is_on
    switched = {gate: is_on for gate, is_on in (staged | single).items() if is_on is not gate.value.is_on}
    for gate, is_on in switched.items():
        if is_on and gate.value.missing:
            raise Misconfigured(FLAG, f"{gate.value.name}=true", gate.value.missing)
    return FeatureGates(switched)


def _pairs(text: str) -> Iterator[tuple[str, bool]]:
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise Misconfigured(FLAG, part, "a gate is written Name=true or Name=false")
        yield name, parse_switch(f"{FLAG} {name}", value)


def _gate(name: str) -> Gate:
    gate = _GATES.get(name)
    if gate is None:
        raise Misconfigured(FLAG, name, f"there is no such gate; there are {', '.join([*_GATES, *_STAGES])}")
    return gate
