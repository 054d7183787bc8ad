"""The sidecar that ships a Ray pod's events and logs to the history's storage, and what Ray must do for it."""

from __future__ import annotations

from typing import Final

from raykeeper.api import labels
from raykeeper.api.containers import (
    COLLECTOR_EVENTS_PORT,
    COLLECTOR_SPOOL_FOLDER,
    COLLECTOR_SPOOL_PATH,
    COLLECTOR_SPOOL_VOLUME,
    DASHBOARD_PORT,
    HISTORY_COLLECTOR,
    RAY_LOGS_PATH,
)
from raykeeper.api.meta import JSON
from raykeeper.api.podtemplates import env_var, pod_spec
from raykeeper.api.podtemplates import has_collector as has_users_collector
from raykeeper.operator.raycluster.pods.ray_node import RayNode
from raykeeper.operator.shared.env import from_field, from_label, literal, missing
from raykeeper.operator.shared.history import Collector
from raykeeper.operator.shared.mounts import attach, volume_at
from raykeeper.operator.shared.rrsa import add_role

GRACE_SECONDS: Final = 60  # Ray drains for 30, then the collector ships what Ray said last
METRICS_ADDRESS_ENV: Final = "RAYKEEPER_METRICS_ADDR"
COLLECTOR_METRICS_PORT: Final = 8085
SPOOL_ENV: Final = "RAY_COLLECTOR_EVENT_DATA_DIR"
SPOOL: Final[JSON] = {"name": COLLECTOR_SPOOL_VOLUME, "emptyDir": {}}
_ENDS_WITH_ITS_POD: Final = frozenset({"name", "emptyDir", "ephemeral"})
COLLECTOR_GRACE: Final = "55s"  # of these, so that it ends before the kubelet ends it

# By name, because `ALL` matches nothing before Ray 2.54; names that a Ray does not know are harmless.
EVENT_TYPES: Final = (
    "TASK_DEFINITION_EVENT",
    "TASK_LIFECYCLE_EVENT",
    "ACTOR_TASK_DEFINITION_EVENT",
    "TASK_PROFILE_EVENT",
    "DRIVER_JOB_DEFINITION_EVENT",
    "DRIVER_JOB_LIFECYCLE_EVENT",
    "NODE_DEFINITION_EVENT",
    "NODE_LIFECYCLE_EVENT",
    "ACTOR_DEFINITION_EVENT",
    "ACTOR_LIFECYCLE_EVENT",
    "WORKER_DEFINITION_EVENT",
    "WORKER_LIFECYCLE_EVENT",
    "PLACEMENT_GROUP_DEFINITION_EVENT",
    "PLACEMENT_GROUP_LIFECYCLE_EVENT",
    "SUBMISSION_JOB_DEFINITION_EVENT",
    "SUBMISSION_JOB_LIFECYCLE_EVENT",
)


def chosen_collector(node: RayNode) -> Collector | None:
    """The collector that the spec or an annotation asks for. Where an annotation asks, one that the user's template has
    already stands for ours: two would want the same port, and the one that lacks it would make the pod unready.
    """
    collector = node.defaults.history.collector(node.spec, node.cluster.metadata.annotations)
    is_users = collector is not None and collector.is_annotated and has_users_collector(node.template)
    return None if is_users else collector


def has_collector(node: RayNode) -> bool:
    return chosen_collector(node) is not None


def is_annotated(node: RayNode) -> bool:
    """Whether it has a collector because an annotation asks for it."""
    collector = chosen_collector(node)
    return collector is not None and collector.is_annotated


def collector_container(node: RayNode, collector: Collector) -> JSON:
    """The sidecar; as an init container that goes on running where that is possible, so that it outlives Ray.

    The image says what runs in it, as in KubeRay: users wrap the collector in scripts of their own.
    """
    container: JSON = {
        "name": HISTORY_COLLECTOR,
        "image": collector.image,
        "imagePullPolicy": collector.image_pull_policy,
        "env": [*_env(node), *missing(collector.env, _identity(node)), *collector.env],
        "resources": collector.resources,
    }
    if collector.env_from:
        container["envFrom"] = list(collector.env_from)
    if collector.is_annotated:
        container["securityContext"] = _security_context(node)
    if node.defaults.has_native_sidecars:
        container["restartPolicy"] = "Always"
    return container


def _security_context(node: RayNode) -> JSON:
    """All that the level "restricted" of Pod Security asks of a container: a pod that keeps to it must not be refused
    for its history. A pod that runs as root says so for all its containers, and one that denied it would not start.
    """
    runs_as_root = (pod_spec(node.template).get("securityContext") or {}).get("runAsUser") == 0
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
        **({} if runs_as_root else {"runAsNonRoot": True}),
    }


def _env(node: RayNode) -> list[JSON]:
    return [
        from_field("POD_IP", "status.podIP"),
        from_label("RAY_CLUSTER_NAME", labels.CLUSTER),
        from_field("RAY_CLUSTER_NAMESPACE", "metadata.namespace"),
        literal("RAY_ROLE", "Head" if node.is_head else "Worker"),
        literal("EVENTS_PORT", str(COLLECTOR_EVENTS_PORT)),
        literal("FQ_RAY_IP", node.head_host),
        *_owner(node),
        *_dashboard(node),
        *_grace(node),
    ]


def add_spool(spec: JSON, ray: JSON, collector: JSON) -> None:
    """Give the collector a volume that no other container has for what the bucket lacks yet: in Ray's folder user code
    can remove it. It stays there if that folder is on a volume that outlives the pod, because the next collector sends
    what this one could not.
    """
    if env_var(collector, SPOOL_ENV) or not set(volume_at(spec, ray, RAY_LOGS_PATH)) <= _ENDS_WITH_ITS_POD:
        return
    attach(spec, collector, SPOOL, {"name": COLLECTOR_SPOOL_VOLUME, "mountPath": COLLECTOR_SPOOL_PATH})
    collector["env"] = [*collector["env"], literal(SPOOL_ENV, f"{COLLECTOR_SPOOL_PATH}/{COLLECTOR_SPOOL_FOLDER}")]


def add_store_access(node: RayNode, spec: JSON, collector: JSON) -> None:
    """Give a collector that an annotation asked for its way to the store: a role, or the volume that it is on."""
    history = node.defaults.history
    if not is_annotated(node):
        return
    add_role(spec, collector, history.settings)
    if history.store_volume is not None:
        volume, mount = history.store_volume
        attach(spec, collector, volume, mount)


def _identity(node: RayNode) -> list[JSON]:
    """Tells the cluster from others of that name, before and after it; a pod's own fields do not say it."""
    return [literal("RAY_CLUSTER_UID", node.cluster.metadata.uid)]


def _grace(node: RayNode) -> list[JSON]:
    """Nearly all of the pod's time, where it is ours to say and begins for the collector when it begins for Ray.

    A native sidecar is told to end after Ray, when up to 30 s are over: its own default fits into what is left.
    """
    is_ours = "terminationGracePeriodSeconds" not in pod_spec(node.template)
    return (
        [literal("RAYKEEPER_GRACE_PERIOD", COLLECTOR_GRACE)]
        if is_ours and not node.defaults.has_native_sidecars
        else []
    )


def _owner(node: RayNode) -> list[JSON]:
    """The RayJob or RayService that the cluster was made for."""
    marks = node.cluster.metadata.labels
    kind, name = marks.get(labels.ORIGINATED_FROM_CRD), marks.get(labels.ORIGINATED_FROM_CR_NAME)
    return [literal("OWNER_KIND", kind), literal("OWNER_NAME", name)] if kind and name else []


def _dashboard(node: RayNode) -> list[JSON]:
    if not node.is_head:
        return []
    port = node.group.ray_start_params.get("dashboard-port", str(DASHBOARD_PORT))
    return [literal("RAY_DASHBOARD_ADDRESS", f"http://localhost:{port}")]


def last_poll_hook(node: RayNode) -> JSON | None:
    """What makes the kubelet tell a head's collector that Ray is about to end: a native sidecar hears of it only after
    Ray, when no dashboard is left to ask how the jobs ended. None where it is told anyway, or listens elsewhere.
    """
    collector = chosen_collector(node)
    if collector is None or not node.is_head or not node.defaults.has_native_sidecars:
        return None
    if env_var({"env": collector.env}, METRICS_ADDRESS_ENV):
        return None
    return {"httpGet": {"path": "/last-poll", "port": COLLECTOR_METRICS_PORT}}


def event_export_env() -> list[JSON]:
    """What makes Ray send its events to the collector."""
    types = ",".join(EVENT_TYPES)
    prefix = "RAY_DASHBOARD_AGGREGATOR_AGENT"
    return [
        literal("RAY_enable_ray_event", "true"),
        literal("RAY_enable_core_worker_ray_event_to_aggregator", "true"),
        literal(f"{prefix}_EVENTS_EXPORT_ADDR", f"http://localhost:{COLLECTOR_EVENTS_PORT}/v1/events"),
        literal(f"{prefix}_EXPOSABLE_EVENT_TYPES", types),
        literal(f"{prefix}_PUBLISHER_HTTP_ENDPOINT_EXPOSABLE_EVENT_TYPES", types),
    ]
