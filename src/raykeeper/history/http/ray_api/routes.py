"""Every path of Ray's dashboard that a session of the past answers, relative to the session's own prefix."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.http.ray_api.actor_pages import get_logical_actor, list_logical_actors
from raykeeper.history.http.ray_api.actors import list_actors, summarize_actors
from raykeeper.history.http.ray_api.cluster import (
    get_cluster_id,
    get_cluster_metadata,
    get_cluster_status,
    get_timezone,
    get_usage_stats_enabled,
    get_version,
)
from raykeeper.history.http.ray_api.events import get_events, list_cluster_events
from raykeeper.history.http.ray_api.jobs import get_job, list_job_states, list_jobs
from raykeeper.history.http.ray_api.libraries import (
    get_datasets,
    get_old_train_runs,
    get_serve_applications,
    get_train_runs,
)
from raykeeper.history.http.ray_api.liveness import (
    get_authentication_mode,
    get_component_activities,
    get_gcs_health,
    get_platform_events,
    get_profiling_enabled,
    get_runtime_env_redaction,
)
from raykeeper.history.http.ray_api.logs import get_archive, get_log, list_logs
from raykeeper.history.http.ray_api.logs_job import get_job_logs
from raykeeper.history.http.ray_api.metrics import (
    get_grafana_health,
    get_prometheus_health,
    get_prometheus_targets,
)
from raykeeper.history.http.ray_api.node_pages import get_node, get_nodes
from raykeeper.history.http.ray_api.nodes import list_nodes
from raykeeper.history.http.ray_api.objects import (
    list_objects,
    list_placement_groups,
    list_runtime_envs,
    summarize_objects,
)
from raykeeper.history.http.ray_api.task_summary import summarize_tasks
from raykeeper.history.http.ray_api.tasks import list_tasks
from raykeeper.history.http.ray_api.timeline import get_timeline
from raykeeper.history.http.ray_api.workers import list_workers
from raykeeper.history.query.context import SessionContext

Answer = Callable[[Request, SessionContext], Awaitable[Response]]


@dataclass(frozen=True)
class Endpoint:
    """One path, answered to GET and HEAD; names in braces are one path segment each."""

    path: str
    answer: Answer


ENDPOINTS = (
    Endpoint("/api/version", get_version),
    Endpoint("/api/ray/version", get_version),
    Endpoint("/timezone", get_timezone),
    Endpoint("/usage_stats_enabled", get_usage_stats_enabled),
    Endpoint("/cluster_id", get_cluster_id),
    Endpoint("/api/authentication_mode", get_authentication_mode),
    Endpoint("/api/gcs_healthz", get_gcs_health),
    Endpoint("/api/profiling_enabled", get_profiling_enabled),
    Endpoint("/api/component_activities", get_component_activities),
    Endpoint("/api/cluster_status", get_cluster_status),
    Endpoint("/api/grafana_health", get_grafana_health),
    Endpoint("/api/prometheus_health", get_prometheus_health),
    Endpoint("/api/prometheus/sd", get_prometheus_targets),
    Endpoint("/api/serve/applications/", get_serve_applications),
    Endpoint("/api/data/datasets/{job_id}", get_datasets),
    Endpoint("/api/train/v2/runs", get_old_train_runs),
    Endpoint("/api/train/v2/runs/v1", get_train_runs),
    Endpoint("/api/jobs/", list_jobs),
    Endpoint("/api/jobs/{job_or_submission_id}", get_job),
    Endpoint("/events", get_events),
    Endpoint("/nodes", get_nodes),
    Endpoint("/nodes/{node_id}", get_node),
    Endpoint("/logical/actors", list_logical_actors),
    Endpoint("/logical/actors/{actor_id}", get_logical_actor),
    Endpoint("/api/v0/cluster_metadata", get_cluster_metadata),
    Endpoint("/api/v0/runtime_env_redaction", get_runtime_env_redaction),
    Endpoint("/api/v0/platform_events", get_platform_events),
    Endpoint("/api/v0/tasks", list_tasks),
    Endpoint("/api/v0/tasks/summarize", summarize_tasks),
    Endpoint("/api/v0/tasks/timeline", get_timeline),
    Endpoint("/api/v0/actors", list_actors),
    Endpoint("/api/v0/actors/summarize", summarize_actors),
    Endpoint("/api/v0/jobs", list_job_states),
    Endpoint("/api/v0/nodes", list_nodes),
    Endpoint("/api/v0/workers", list_workers),
    Endpoint("/api/v0/placement_groups", list_placement_groups),
    Endpoint("/api/v0/objects", list_objects),
    Endpoint("/api/v0/objects/summarize", summarize_objects),
    Endpoint("/api/v0/runtime_envs", list_runtime_envs),
    Endpoint("/api/v0/cluster_events", list_cluster_events),
    Endpoint("/api/v0/logs", list_logs),
    Endpoint("/api/v0/logs/archive", get_archive),  # before the next one, whose media type it would be
    Endpoint("/api/v0/logs/{media_type}", get_log),
    Endpoint("/api/jobs/{job_or_submission_id}/logs", get_job_logs),
)
