"""Ray objects as Argo CD and Flux see them, and how each of them should judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

Json = dict[str, Any]
EXAMPLES: Final = Path(__file__).parents[2] / "examples" / "gitops"
LUA: Final[dict[str, str]] = yaml.safe_load((EXAMPLES / "argocd-cm.yaml").read_text())["data"]
EXPRESSIONS: Final[dict[str, Json]] = {
    entry["kind"]: {name: text for name, text in entry.items() if name not in ("apiVersion", "kind")}
    for entry in yaml.safe_load((EXAMPLES / "flux-kustomization.yaml").read_text())["spec"]["healthCheckExprs"]
}


def health_check(kind: str) -> str:
    """The Lua for a kind."""
    return LUA[f"resource.customizations.health.ray.io_{kind}"]


def condition(name: str, status: str, reason: str = "Because") -> Json:
    return {"type": name, "status": status, "reason": reason, "message": f"about {name}", "observedGeneration": 2}


class Case(NamedTuple):
    """One object, and the words of both tools."""

    kind: str
    spec: Json
    status: Json | None
    argo: str
    flux: str

    @property
    def manifest(self) -> Json:
        body = {
            "apiVersion": "ray.io/v1",
            "kind": self.kind,
            "metadata": {"name": "a", "generation": 2},
            "spec": self.spec,
        }
        return body if self.status is None else {**body, "status": self.status}


def _told(*conditions: Json, generation: int = 2, **status: Any) -> Json:
    return {"observedGeneration": generation, "conditions": list(conditions), **status}


_HEAD, _ALL = condition("HeadPodReady", "True"), condition("RayClusterProvisioned", "True")
_READY, _NOT_READY = condition("Ready", "True"), condition("Ready", "False")
_AUTOSCALED: Final = {"enableInTreeAutoscaling": True}
NO_STATUS: Final = "Error"
"""Flux cannot say anything about an object without a status, and waits."""
CASES: Final = (
    Case("RayCluster", {}, None, "Progressing", NO_STATUS),
    Case("RayCluster", {}, _told(_HEAD, _ALL, _READY), "Healthy", "Current"),
    Case("RayCluster", {}, _told(_HEAD, _ALL, _NOT_READY), "Progressing", "InProgress"),
    Case("RayCluster", _AUTOSCALED, _told(_HEAD, _ALL, _NOT_READY), "Healthy", "Current"),
    Case("RayCluster", _AUTOSCALED, _told(_HEAD, _NOT_READY), "Progressing", "InProgress"),
    Case("RayCluster", {}, _told(_HEAD, _ALL), "Healthy", "Current"),
    Case("RayCluster", {}, _told(_HEAD, _ALL, _READY, generation=1), "Progressing", "InProgress"),
    Case("RayCluster", {}, _told(condition("HeadPodReady", "False")), "Progressing", "InProgress"),
    Case("RayCluster", {}, _told(condition("RayClusterInvalid", "True")), "Degraded", "Failed"),
    Case("RayCluster", {}, _told(_HEAD, condition("ReplicaFailure", "True")), "Degraded", "Failed"),
    Case("RayCluster", {"suspend": True}, _told(condition("RayClusterSuspended", "True")), "Suspended", "Current"),
    Case("RayCluster", {"suspend": True}, _told(_NOT_READY), "Progressing", "InProgress"),
    Case("RayJob", {}, None, "Progressing", NO_STATUS),
    Case("RayJob", {}, _told(jobDeploymentStatus="Initializing"), "Progressing", "InProgress"),
    Case("RayJob", {}, _told(jobDeploymentStatus="Running"), "Progressing", "Current"),
    Case("RayJob", {}, _told(jobDeploymentStatus="Complete", jobStatus="SUCCEEDED"), "Healthy", "Current"),
    Case("RayJob", {}, _told(jobDeploymentStatus="Complete", jobStatus="STOPPED"), "Degraded", "Failed"),
    Case("RayJob", {}, _told(jobDeploymentStatus="Failed", message="out of memory"), "Degraded", "Failed"),
    Case("RayJob", {}, _told(jobDeploymentStatus="ValidationFailed"), "Degraded", "Failed"),
    Case("RayJob", {}, _told(jobDeploymentStatus="Suspended"), "Suspended", "Current"),
    Case("RayService", {}, None, "Progressing", NO_STATUS),
    Case("RayService", {}, _told(_READY), "Healthy", "Current"),
    Case("RayService", {}, _told(_NOT_READY), "Progressing", "InProgress"),
    Case("RayService", {}, _told(_READY, generation=1), "Progressing", "InProgress"),
    Case("RayService", {}, _told(condition("Ready", "False", "InitializingTimeout")), "Degraded", "Failed"),
    Case("RayService", {}, _told(condition("Ready", "False", "ValidationFailed")), "Degraded", "Failed"),
    Case("RayService", {}, _told(_READY, condition("RayServiceInvalid", "True")), "Degraded", "Failed"),
    Case("RayService", {"suspend": True}, _told(_NOT_READY, condition("Suspended", "True")), "Suspended", "Current"),
    Case("RayService", {"suspend": True}, _told(_NOT_READY), "Progressing", "InProgress"),
    Case("RayCronJob", {}, None, "Healthy", NO_STATUS),
    Case("RayCronJob", {}, _told(_READY), "Healthy", "Current"),
    Case("RayCronJob", {"suspend": True}, _told(_READY), "Suspended", "Current"),
    Case("RayCronJob", {}, _told(_NOT_READY, condition("Stalled", "True")), "Degraded", "Failed"),
)
