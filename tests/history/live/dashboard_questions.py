"""What a live dashboard is asked before its cluster ends: lists, single things, summaries, pages, timelines, logs."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

from support.ray_clusters import TOKEN, RayCluster
from support.raycapture import Recorded

ASK_SECONDS = 60.0
KINDS = ("actors", "jobs", "nodes", "placement_groups", "workers", "tasks", "objects", "runtime_envs")
GENERAL = {
    "version": "/api/version",
    "timezone": "/timezone",
    "cluster_id": "/cluster_id",
    "cluster_metadata": "/api/v0/cluster_metadata",
    "cluster_status": "/api/cluster_status?format=1",
    "serve_applications": "/api/serve/applications/",
    "component_activities": "/api/component_activities",
    "platform_events": "/api/v0/platform_events",
    "nodes_hostnamelist": "/nodes?view=hostNameList&nocache=1",
    "logical_actors": "/logical/actors?nocache=1",
    "nonexistent": "/api/v0/nope",
}
"""Ray caches some answers, and the first one after a pause is as old as the pause: hence `nocache`."""

FILTERS = {
    "tasks_failed": ("tasks", (("state", "=", "failed"),), "&detail=1"),
    "tasks_unfinished": ("tasks", (("state", "!=", "FINISHED"),), ""),
    "tasks_named": ("tasks", (("name", "=", "square"), ("state", "=", "FINISHED")), ""),
    "tasks_unknown_column": ("tasks", (("nope", "=", "1"),), ""),
    "actors_dead": ("actors", (("state", "=", "DEAD"),), "&detail=1"),
    "actors_of_class": ("actors", (("class_name", "=", "Fragile"),), ""),
    "groups_removed": ("placement_groups", (("state", "=", "REMOVED"),), ""),
    "drivers": ("workers", (("worker_type", "=", "DRIVER"),), ""),
}


class Questions:
    """Asks one cluster's dashboard everything, once."""

    def __init__(self, cluster: RayCluster) -> None:
        self._cluster = cluster

    def ask(self, name: str, path: str) -> Recorded:
        request = urllib.request.Request(self._cluster.dashboard + path, headers={"Authorization": f"Bearer {TOKEN}"})
        try:
            with urllib.request.urlopen(request, timeout=ASK_SECONDS) as answer:
                status, text = answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            status, text = refused.code, refused.read().decode()
        return Recorded(name, "GET", path, {}, status, _parsed(text))

    def ask_everything(self) -> Iterator[Recorded]:
        yield from (self.ask(f"general.{name}", path) for name, path in GENERAL.items())
        yield from (self.ask(f"state.{kind}", f"/api/v0/{kind}") for kind in KINDS)
        yield from (self.ask(f"state.{kind}_detail", f"/api/v0/{kind}?detail=1&limit=10000") for kind in KINDS)
        yield self.ask("state.tasks_with_driver", "/api/v0/tasks?detail=1&limit=10000&exclude_driver=False")
        for name, (kind, filters, more) in FILTERS.items():
            yield self.ask(f"state.filter_{name}", f"/api/v0/{kind}?{_query(*filters)}{more}")
        yield from (self.ask(f"summary.{kind}", f"/api/v0/{kind}/summarize") for kind in ("tasks", "actors", "objects"))
        yield self.ask("summary.tasks_lineage", "/api/v0/tasks/summarize?summary_by=lineage")
        yield self.ask("timeline.all", "/api/v0/tasks/timeline?download=1")
        yield from self._ask_about_each()

    def rows(self, kind: str) -> list[dict[str, Any]]:
        """The state API's list of a kind."""
        answer = self.ask(kind, f"/api/v0/{kind}?detail=1&limit=10000")
        rows: list[dict[str, Any]] = answer.body["data"]["result"]["result"]
        return rows

    def _ask_about_each(self) -> Iterator[Recorded]:
        for actor in self.rows("actors"):
            found = actor["actor_id"]
            yield self.ask(f"get.actor.{actor['class_name']}", f"/api/v0/actors?detail=1&{_is('actor_id', found)}")
            yield self.ask(f"actors.logical.{actor['class_name']}", f"/logical/actors/{found}?nocache=1")
        for node in self.rows("nodes"):
            yield self.ask("nodes.detail", f"/nodes/{node['node_id']}?nocache=1")
        for job in self.ask("jobs.list", "/api/jobs/").body:
            yield from self._ask_about_job(job)
        yield self.ask("jobs.list", "/api/jobs/")
        yield self.ask("jobs.unknown", "/api/jobs/nope")
        for task in self.rows("tasks"):
            if task["type"] == "NORMAL_TASK":
                which = f"task_id={task['task_id']}&attempt_number={task['attempt_number']}&lines=-1"
                yield self.ask(f"logs.task.{task['name']}", f"/api/v0/logs/file?{which}")

    def _ask_about_job(self, job: dict[str, Any]) -> Iterator[Recorded]:
        if job["submission_id"]:
            yield self.ask("jobs.submission", f"/api/jobs/{job['submission_id']}")
            yield self.ask("logs.job", f"/api/jobs/{job['submission_id']}/logs")
        if job["job_id"]:
            yield self.ask("jobs.driver", f"/api/jobs/{job['job_id']}")
            yield self.ask("summary.tasks_job", f"/api/v0/tasks/summarize?{_is('job_id', job['job_id'])}")
            yield self.ask("timeline.job", f"/api/v0/tasks/timeline?download=1&job_id={job['job_id']}")


def _is(column: str, value: str) -> str:
    return _query((column, "=", value))


def _query(*filters: tuple[str, str, str]) -> str:
    return "&".join(
        f"filter_keys={column}&filter_predicates={'%21' if predicate == '!=' else ''}%3D&filter_values={value}"
        for column, predicate, value in filters
    )


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
