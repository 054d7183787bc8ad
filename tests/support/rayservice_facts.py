"""RayServices and what is known about them, for tests of decisions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from raykeeper.api.meta import JSON, ObjectMeta
from raykeeper.api.raycluster import RayClusterSpec, RayClusterStatus
from raykeeper.api.rayservice import AppStatus, RayService, RayServiceSpec, RayServiceStatuses
from raykeeper.operator.rayservice.facts import ClusterFacts, Facts, HeadFacts, ServeFacts
from raykeeper.operator.rayservice.versions import Marks, Match

NOW = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)
TEMPLATE: JSON = {"spec": {"containers": [{"name": "ray", "image": "rayproject/ray:2.60.0"}]}}
GROUP: JSON = {"groupName": "small", "replicas": 1, "template": TEMPLATE}
CONFIG: JSON = {"rayVersion": "2.60.0", "headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": [GROUP]}
SERVE_CONFIG = "applications:\n- name: shop\n  import_path: model:app\n"


def ago(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def a_spec(**changes: Any) -> RayClusterSpec:
    return msgspec.convert(CONFIG | changes, RayClusterSpec)


def a_service(
    active: str = "", pending: str = "", annotations: JSON | None = None, status: JSON | None = None, **spec: Any
) -> RayService:
    """A RayService with these clusters; fields of spec and status as in JSON."""
    body = {"serveConfigV2": SERVE_CONFIG, "rayClusterConfig": CONFIG, **spec}
    known = {
        "activeServiceStatus": {"rayClusterName": active},
        "pendingServiceStatus": {"rayClusterName": pending},
        "observedGeneration": 3,
        **(status or {}),
    }
    return RayService(
        ObjectMeta(name="web", namespace="ns", uid="service-uid", generation=3, annotations=annotations or {}),
        msgspec.convert(body, RayServiceSpec),
        msgspec.convert(known, RayServiceStatuses),
    )


RUNNING = ServeFacts({"shop": AppStatus("RUNNING")}, is_current=True, has_config=True)


def a_cluster(name: str, match: Match = Match.SAME, **facts: Any) -> ClusterFacts:
    """A cluster that serves."""
    found = ClusterFacts(
        name=name,
        uid=f"{name}-uid",
        is_going=False,
        match=match,
        marks=Marks("hash", 1, "raykeeper-0"),
        status=RayClusterStatus(state="ready"),
        head=HeadFacts(f"{name}-head", "head-uid/0", is_ready=True, serve_label="true", is_proxy_healthy=True),
        serve=RUNNING,
        ready_pods=2,
    )
    return replace(found, **facts)


def facts(*clusters: ClusterFacts, **given: Any) -> Facts:
    usual: dict[str, Any] = {"clusters": {one.name: one for one in clusters}, "random_end": "zzzzz", "endpoints": 2}
    return Facts(**(usual | given))
