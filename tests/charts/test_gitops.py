"""The health checks for Argo CD say what the operator's status means. Argo CD runs Lua 5.1, and so do these tests."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

import bed
from bed.pinned import installed

ROOT: Final = Path(__file__).parents[2]
PINS: Final = Path(bed.__path__[0]) / "requirements-lua.txt"
CHECKS: Final[dict[str, str]] = yaml.safe_load((ROOT / "examples" / "gitops" / "argocd-cm.yaml").read_text())["data"]
Json = dict[str, Any]


@pytest.fixture(scope="module")
def lua() -> Any:
    """A runtime of Lua 5.1."""
    sys.path.insert(0, str(installed(PINS, "Lua")))
    try:
        return importlib.import_module("lupa.lua51").LuaRuntime()
    finally:
        sys.path.pop(0)


def conditions(**statuses: bool) -> list[Json]:
    return [{"type": name, "status": str(value), "message": f"about {name}"} for name, value in statuses.items()]


def an_object(status: Json | None, generation: int = 2, **spec: Any) -> Json:
    return {"metadata": {"generation": generation}, "spec": spec, **({"status": status} if status else {})}


READY: Final = conditions(HeadPodReady=True, RayClusterProvisioned=True)
CASES: Final[list[tuple[str, Json, str]]] = [
    ("RayCluster", an_object(None), "Progressing"),
    ("RayCluster", an_object({"observedGeneration": 2, "conditions": READY}), "Healthy"),
    ("RayCluster", an_object({"observedGeneration": 1, "conditions": READY}), "Progressing"),
    ("RayCluster", an_object({"observedGeneration": 2, "conditions": conditions(HeadPodReady=False)}), "Progressing"),
    ("RayCluster", an_object({"observedGeneration": 2, "conditions": conditions(RayClusterInvalid=True)}), "Degraded"),
    ("RayCluster", an_object({"observedGeneration": 2, "conditions": conditions(ReplicaFailure=True)}), "Degraded"),
    ("RayCluster", an_object({"conditions": conditions(RayClusterSuspended=True)}, suspend=True), "Suspended"),
    ("RayCluster", an_object({"observedGeneration": 2, "conditions": READY}, suspend=True), "Progressing"),
    ("RayJob", an_object(None), "Progressing"),
    ("RayJob", an_object({"jobDeploymentStatus": "Running"}), "Progressing"),
    ("RayJob", an_object({"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}), "Healthy"),
    ("RayJob", an_object({"jobDeploymentStatus": "Complete", "jobStatus": "STOPPED"}), "Degraded"),
    ("RayJob", an_object({"jobDeploymentStatus": "Failed", "message": "out of memory"}), "Degraded"),
    ("RayJob", an_object({"jobDeploymentStatus": "ValidationFailed"}), "Degraded"),
    ("RayJob", an_object({"jobDeploymentStatus": "Suspended"}), "Suspended"),
    ("RayService", an_object(None), "Progressing"),
    ("RayService", an_object({"observedGeneration": 2, "conditions": conditions(Ready=True)}), "Healthy"),
    ("RayService", an_object({"observedGeneration": 2, "conditions": conditions(Ready=False)}), "Progressing"),
    ("RayService", an_object({"observedGeneration": 1, "conditions": conditions(Ready=True)}), "Progressing"),
    ("RayCronJob", an_object(None), "Healthy"),
    ("RayCronJob", an_object(None, suspend=True), "Suspended"),
    ("RayCronJob", an_object({"conditions": conditions(Stalled=True)}), "Degraded"),
]


@pytest.mark.parametrize(("kind", "told", "health"), CASES)
def test_health_is_what_the_status_means(kind: str, told: Json, health: str, lua: Any) -> None:
    check = lua.eval(f"function(obj) {CHECKS[f'resource.customizations.health.ray.io_{kind}']} end")
    answer = check(lua.table_from(told, recursive=True))
    assert answer.status == health
    assert isinstance(answer.message, str)
