"""Our own pages, each with words that are on it only if it shows what it should. A new page is one more row."""

from __future__ import annotations

from dataclasses import dataclass

from support.raycapture import HEAD, SESSION

PREFIX = f"/s/{SESSION.namespace}/{SESSION.cluster}/{SESSION.session}"
RUN = f"{SESSION.namespace}/{SESSION.cluster}/latest"
EMPTY_SESSION = "/s/team-a/train-0/session_00000/overview"
EMPTY_REPORT = "/s/team-a/train-0/session_00000/report"
UNSTARTED = "head-image-missing"
"""A recorded cluster that never had a session."""
TASK = "0305c20c67b558eeffffffffffffffffffffffff02000000"
LONG_NAME = "a-name-as-long-as-a-label-of-kubernetes-may-be-without-any-space"[:63]
FINGERPRINT = "FINGERPRINT"
"""In a path: that of the recorded failure "job_fail: raising", which the server says."""
REFUSED_RAYJOB = "mistyped"
"""A RayJob that never had a cluster."""


@dataclass(frozen=True)
class OwnPage:
    name: str
    path: str
    words: tuple[str, ...]
    status: int = 200


OWN_PAGES = (
    OwnPage("home", "/", ("Jobs, last 24 h", "golden-fail", "job_fail.py", "Failed", "owner=me")),
    OwnPage("home-failed", "/jobs?outcome=failed&sort=tasks", ("job_fail.py",)),
    OwnPage("home-none", "/jobs?text=nothing-is-called-so", ("There is no such job.",)),
    OwnPage("failures", "/failures", ("New", "Regressed", "job_fail: raising", "job_main.py:88")),
    OwnPage("failures-none", "/failures?text=nothing-is-called-so", ("There is no such failure.",)),
    OwnPage("failure", f"/failures/{FINGERPRINT}", ("job_fail: raising", "Note", "golden-fail")),
    OwnPage("storage", "/storage", ("Not measured yet", LONG_NAME, "7.0 GB", "team-a")),
    OwnPage("rayjob", f"/rayjobs/team-a/{REFUSED_RAYJOB}", ("Root cause", "spec.entrypoint is missing")),
    OwnPage("sessions", "/sessions?limit=20", (SESSION.cluster, LONG_NAME, "unknown")),
    OwnPage("sessions-none", "/sessions?text=nothing-is-called-so", ("There is no such session.",)),
    OwnPage("monitoring", "/monitoring", ("What the machines of Ray clusters used", SESSION.cluster, "Past")),
    OwnPage("session-monitoring", f"{PREFIX}/monitoring", ("Over time", "CPU", "Resource-hours")),
    OwnPage("live-off", "/live", ("not connected to Kubernetes", "--live-objects=on")),
    OwnPage("compare-form", "/compare", ("Run A",)),
    OwnPage("nowhere", "/nosuch", ("There is no page /nosuch here",), 404),
    OwnPage("report", f"{PREFIX}/report", ("Root cause", "exited with code 7")),
    OwnPage("report-of-job", f"{PREFIX}/report/golden-main", ("ValueError: boom", "Timeline", "Root cause")),
    OwnPage("report-empty", EMPTY_REPORT, ("no event has arrived", "What is not known")),
    OwnPage("never-started", f"/clusters/recorded/{UNSTARTED}", ("Root cause", "ErrImageNeverPull")),
    OwnPage("overview", f"{PREFIX}/overview", ("Nodes over time", "ray-worker", "golden-badenv", "AsyncWorker.work")),
    OwnPage("overview-empty", EMPTY_SESSION, ("No job was submitted", "No tasks are recorded", "No node is recorded")),
    OwnPage("job", f"{PREFIX}/job/golden-main", ("Root cause", "ValueError: boom", "Why it failed", "Compare with")),
    OwnPage("job-timeline", f"{PREFIX}/job/golden-main/timeline", ("sleeper", "No Kubernetes events were recorded")),
    OwnPage("job-logs", f"{PREFIX}/job/golden-main/logs", ("Driver log", "driver stdout: job id 02000000")),
    OwnPage("job-log", f"{PREFIX}/job/golden-fail/logs?filter=RAISING", ("1 line with", "job_fail: raising")),
    OwnPage("job-tasks", f"{PREFIX}/job/golden-main/tasks", ("By function", "those that failed come first")),
    OwnPage("job-task", f"{PREFIX}/job/golden-main/tasks?task={TASK}", ("Attempt", "finished", TASK)),
    OwnPage("job-actors", f"{PREFIX}/job/golden-main/actors", ("to_be_killed", "Ended because")),
    OwnPage("job-resources", f"{PREFIX}/job/golden-main/resources", ("Resource-hours", "ray-head")),
    OwnPage("job-environment", f"{PREFIX}/job/golden-main/environment", ("DB_PASSWORD", "owner=me")),
    OwnPage("job-no-tab", f"{PREFIX}/job/golden-main/nonsense", ("A job has no tab nonsense",), 404),
    OwnPage(
        "compare",
        f"/compare?a={RUN}/golden-main&b={RUN}/golden-fail",
        ("What differs", "python job_fail.py", "Environment variables", "- removed", "changed, worse", "gone"),
    ),
    OwnPage("compare-nothing", f"/compare?a={RUN}/golden-main&b=x", ("'x' is no run",), 400),
    OwnPage("search", f"{PREFIX}/search?text=boom", ("ValueError: boom", "all was searched")),
    OwnPage("search-some", f"{PREFIX}/search?text=%5Bae%5Di&regex=true&limit=15", ("15 hits so far", "Load more")),
    OwnPage("search-nothing", f"{PREFIX}/search?text=no-line-holds-this", ("No matches.",)),
    OwnPage("search-refused", f"{PREFIX}/search?text=(&regex=true", ("No pattern: missing )",), 400),
    OwnPage("search-all", "/search?text=RAISING&ignore_case=true", ("job_fail: raising", SESSION.cluster)),
    OwnPage("log", f"{PREFIX}/log?node={HEAD.node_id}&file=job-driver-golden-fail.log&at=9", ("job_fail: raising",)),
    OwnPage("no-such-job", f"{PREFIX}/report/nope", ("There is no job nope",), 404),
    OwnPage("no-such-filter", "/sessions?since=yesterday", ("Parameter 'since'",), 400),
)
