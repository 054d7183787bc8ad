"""Every page of Ray's dashboard, with words that are on it only if the session's own data is."""

from __future__ import annotations

from dataclasses import dataclass

from support.raycapture import HEAD, WORKER

JOB = "02000000"
TASK = "0305c20c67b558eeffffffffffffffffffffffff02000000"
TASK_STDOUT = "ok task stdout 1"
ACTOR = "97fe1ec5f1c54a43933c7cb602000000"
PROXY_ACTOR = "a3cad53750072a7e1b45025a05000000"
NO_METRICS = "Time-series charts are hidden"


@dataclass(frozen=True)
class Page:
    """`route` is what stands behind `#` in the address."""

    name: str
    route: str
    words: tuple[str, ...]


PAGES = (
    Page("overview", "/overview", ("golden-fail (03000000)", "hello_app", "Completed a ray job golden-main")),
    Page("platform-events", "/platform-events", ("Platform events are not enabled",)),
    Page("cluster", "/cluster", ("ray-head", "ray-worker", WORKER.ip, "0.0/10.0 worker")),
    Page("cluster-info", "/cluster/info", ("2.60.0", "3.11.7")),
    Page("node", f"/cluster/nodes/{HEAD.node_id}", ("ray-head", HEAD.ip, "ACTOR (23)")),
    Page("jobs", "/jobs", ("golden-main", "golden-badenv", "Job was intentionally stopped.")),
    Page("job", f"/jobs/{JOB}", ("golden-main", "Failed: 13", "driver stdout: job id 02000000")),
    Page("job-by-submission-id", "/jobs/golden-fail", ("python job_fail.py", "job_fail: raising")),
    Page("job-info", f"/jobs/{JOB}/info", ("golden-main", "SUCCEEDED", '"owner": "me"')),
    Page("job-actors", f"/jobs/{JOB}/actors", ("to_be_killed", "Counter(n=7)")),
    Page("job-actor", f"/jobs/{JOB}/actors/{ACTOR}", ("detached_counter", "Counter(n=100)")),
    Page("job-task", f"/jobs/{JOB}/tasks/{TASK}", ("NORMAL_TASK", "310ms", "ok task stderr 1")),
    Page("actors", "/actors", ("to_be_killed", "x 31")),
    Page("actor", f"/actors/{PROXY_ACTOR}", ("ProxyActor", "Proxy starting on node")),
    Page("actor-task", f"/actors/{ACTOR}/tasks/{TASK}", ("NORMAL_TASK", "ok task stderr 1")),
    Page("metrics", "/metrics", (NO_METRICS,)),
    Page("serve", "/serve", ("hello_app", "RUNNING", "Deploying new version of Deployment(name='Hello'")),
    Page("serve-system", "/serve/system", ("EveryNode", f"HTTPProxyActor:{WORKER.node_id}")),
    Page("serve-controller", "/serve/system/controller", ("SERVE_CONTROLLER_ACTOR", "Controller starting")),
    Page("serve-proxy", f"/serve/system/proxies/{HEAD.node_id}", (PROXY_ACTOR, "Proxy starting on node")),
    Page("serve-application", "/serve/applications/hello_app", ("Hello", "HEALTHY")),
    Page("serve-deployment", "/serve/applications/hello_app/Hello", ("uwznzshq", "Graceful shutdown complete")),
    Page("serve-replica", "/serve/applications/hello_app/Hello/uwznzshq", ("Started initializing replica",)),
    Page("logs", "/logs/", (HEAD.node_id, WORKER.node_id)),
    Page("logs-node", f"/logs/?nodeId={HEAD.node_id}", ("gcs_server.out", "job-driver-golden-main.log", "events/")),
    Page("logs-folder", f"/logs/?nodeId={HEAD.node_id}&folder=events", ("event_AUTOSCALER.log", "event_GCS.log")),
    Page("log", f"/logs/viewer?nodeId={HEAD.node_id}&fileName=raylet.out", ("Setting cluster ID to",)),
)

UNMEASURED = (
    Page("overview", "/overview", ("golden-fail (03000000)", "Completed a ray job golden-main")),
    Page("cluster", "/cluster", ("ray-head", "ray-worker", WORKER.ip)),
    Page("node", f"/cluster/nodes/{HEAD.node_id}", ("ray-head", HEAD.ip, "ACTOR (23)")),
    Page("jobs", "/jobs", ("golden-main", "python job_fail.py")),
    Page("job", f"/jobs/{JOB}", ("golden-main", "Failed: 13", "driver stdout: job id 02000000")),
    Page("task", f"/jobs/{JOB}/tasks/{TASK}", ("NORMAL_TASK", "310ms", "ok task stderr 1")),
    Page("actors", "/actors", ("to_be_killed", "x 31")),
    Page("actor", f"/actors/{PROXY_ACTOR}", ("ProxyActor", "Proxy starting on node")),
    Page("serve", "/serve", ("Serve not started",)),
    Page("logs", f"/logs/?nodeId={HEAD.node_id}", ("gcs_server.out", "job-driver-golden-main.log")),
)
"""What is left of a cluster whose dashboard was never asked, or died before that."""
