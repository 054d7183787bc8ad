"""Liveness and readiness of the Ray container, asked from Ray's own health endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from raykeeper.api.containers import DASHBOARD_AGENT_PORT, DASHBOARD_PORT, SERVE_PORT, SERVE_PORT_NAME
from raykeeper.api.meta import JSON
from raykeeper.api.versions import HTTP_PROBES, parse_version
from raykeeper.operator.raycluster.pods.ray_node import RayNode
from raykeeper.operator.raycluster.pods.ray_start_params import AGENT_PORT, DASHBOARD_PORT_PARAM

PERIOD_SECONDS: Final = 5
HEAD_TIMEOUT_SECONDS: Final = 5  # the head's dashboard is the busiest process of a cluster
WORKER_TIMEOUT_SECONDS: Final = 2
RAYLET_SECONDS: Final = 2
LIVENESS_FAILURES: Final = 120  # ten minutes: a restart loses all work on the node
READINESS_FAILURES: Final = 10
SERVING_READINESS_FAILURES: Final = 1  # a proxy that does not answer must get no more requests


def missing_probes(node: RayNode, params: Mapping[str, str]) -> JSON:
    """The probes that the user did not set."""
    container = node.users_container
    probes = {"livenessProbe": _liveness(node, params), "readinessProbe": _readiness(node, params)}
    return {name: probe for name, probe in probes.items() if not container.get(name)}


def _liveness(node: RayNode, params: Mapping[str, str]) -> JSON:
    return _probe(node, _health(node, params), initial_delay=30, failures=LIVENESS_FAILURES)


def _readiness(node: RayNode, params: Mapping[str, str]) -> JSON:
    if not node.is_for_service or node.is_head:
        return _probe(node, _health(node, params), initial_delay=10, failures=READINESS_FAILURES)
    proxy = _answers_success(_serve_port(node.users_container), "-/healthz", _timeout(node))
    return _probe(node, _bash(_raylet_check(params), proxy), initial_delay=10, failures=SERVING_READINESS_FAILURES)


def _probe(node: RayNode, handler: JSON, *, initial_delay: int, failures: int) -> JSON:
    return handler | {
        "initialDelaySeconds": initial_delay,
        "periodSeconds": PERIOD_SECONDS,
        "timeoutSeconds": _timeout(node),
        "successThreshold": 1,
        "failureThreshold": failures,
    }


def _health(node: RayNode, params: Mapping[str, str]) -> JSON:
    """One request where Ray answers for the whole node, else one to each of its parts."""
    version = parse_version(node.spec.ray_version)
    if version is not None and version >= HTTP_PROBES:
        return {"httpGet": {"path": "/api/healthz", "port": _agent_port(params)}}
    if not node.is_head:
        return _bash(_raylet_check(params))
    dashboard_port = _port(params, DASHBOARD_PORT_PARAM, DASHBOARD_PORT)
    return _bash(_raylet_check(params), _answers_success(dashboard_port, "api/gcs_healthz", _timeout(node)))


def _timeout(node: RayNode) -> int:
    return HEAD_TIMEOUT_SECONDS if node.is_head else WORKER_TIMEOUT_SECONDS


def _raylet_check(params: Mapping[str, str]) -> str:
    return _answers_success(_agent_port(params), "api/local_raylet_healthz", RAYLET_SECONDS)


def _answers_success(port: int, path: str, seconds: int) -> str:
    return f"wget --tries 1 -T {seconds} -q -O- http://localhost:{port}/{path} | grep success"


def _bash(*checks: str) -> JSON:
    return {"exec": {"command": ["bash", "-c", " && ".join(checks)]}}


def _agent_port(params: Mapping[str, str]) -> int:
    return _port(params, AGENT_PORT, DASHBOARD_AGENT_PORT)


def _port(params: Mapping[str, str], name: str, default: int) -> int:
    """The option's number; the default where it is none, as in KubeRay: Ray itself says what is wrong with it."""
    text = params.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() else default


def _serve_port(container: JSON) -> int:
    ports: list[JSON] = container.get("ports") or []
    return next((port["containerPort"] for port in ports if port.get("name") == SERVE_PORT_NAME), SERVE_PORT)
