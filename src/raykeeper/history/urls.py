"""A session as users name it, `<namespace>/<cluster>/<session>`, and the path of every page about it. Pure."""

from __future__ import annotations

from typing import Literal
from urllib.parse import quote, urlencode

from raykeeper.errors import Misconfigured
from raykeeper.layout.keys import SessionId

LATEST = "latest"
"""In the place of a session's name: the one of that cluster that started last."""

HERE = "#here"
"""The line of a log that its address is about."""
_JOB_ID_CHARS = 8  # at the end of every task's and actor's id


def session_path(session: SessionId) -> str:
    """Where a session's dashboard is; everything about the session is below it."""
    return f"{session.path}/"


def parse_session_name(text: str) -> SessionId:
    """Raises `Misconfigured` for what is not three names."""
    names = text.strip("/").split("/")
    if len(names) != 3 or not all(names):
        raise Misconfigured("session", text, "name it as <namespace>/<cluster>/<session>")
    return SessionId(*names)


def report_path(session: SessionId, job: str | None = None) -> str:
    """Where it says why a session, or one of its jobs, failed."""
    return f"{session_path(session)}report{f'/{quote(job, safe=str())}' if job else ''}"


def rayjob_path(namespace: str, rayjob: str) -> str:
    """The way to the job of a RayJob, or why there is none."""
    return f"/rayjobs/{quote(namespace, safe='')}/{quote(rayjob, safe='')}"


def cluster_path(namespace: str, cluster: str) -> str:
    """Where it says why a cluster never got a session."""
    return f"/clusters/{quote(namespace, safe='')}/{quote(cluster, safe='')}"


MONITORING_PATH = "/monitoring"
"""Where clusters are listed with the way to what they use."""


def session_monitoring_path(session: SessionId) -> str:
    """Where it is shown what the nodes of a session used."""
    return f"{session_path(session)}monitoring"


LIVE_PATH = "/live"
"""Where Ray's objects are listed that exist in Kubernetes now."""


def live_path(kind: str, namespace: str, name: str) -> str:
    """Where one of them is shown."""
    return f"{LIVE_PATH}/{kind.lower()}/{quote(namespace, safe='')}/{quote(name, safe='')}"


def failure_path(fingerprint: str) -> str:
    """Where one kind of failure is shown."""
    return f"/failures/{quote(fingerprint, safe='')}"


def overview_path(session: SessionId) -> str:
    """Where a session is shown at a glance."""
    return f"{session_path(session)}overview"


JobTab = Literal["", "timeline", "logs", "tasks", "actors", "resources", "environment"]
"""A tab of a job's page as its address spells it; the first one says why the job failed."""


def job_path(session: SessionId, job: str, tab: JobTab = "") -> str:
    """Where one of its jobs is shown, by its id or its submission's."""
    return f"{session_path(session)}job/{quote(job, safe='')}{f'/{tab}' if tab else ''}"


def task_path(session: SessionId, job: str, task_id: str, attempt_number: int | None = None) -> str:
    """Where one task of a job is shown; its id ends with that of its job."""
    attempt = {} if attempt_number is None else {"attempt": attempt_number}
    return f"{job_path(session, job or task_id[-_JOB_ID_CHARS:], 'tasks')}?{urlencode({'task': task_id, **attempt})}"


def actor_path(session: SessionId, job: str, actor_id: str) -> str:
    """Where one actor of a job is shown; its id ends with that of its job."""
    return f"{job_path(session, job or actor_id[-_JOB_ID_CHARS:], 'actors')}#{anchor('a', actor_id)}"


def node_path(session: SessionId, job: str, node_id: str) -> str:
    """Where a node is shown: among those that a job ran on, or in Ray's dashboard."""
    if job:
        return f"{job_path(session, job, 'resources')}#{anchor('n', node_id)}"
    return f"{session_path(session)}#/cluster/nodes/{quote(node_id, safe='')}"


def anchor(kind: str, name: str) -> str:
    """The id of an element about something of this name."""
    return f"{kind}-{quote(name, safe='')}"


def search_path(session: SessionId) -> str:
    """Where a session is searched."""
    return f"{session_path(session)}search"


def log_path(session: SessionId, node_id: str, file: str, generation: str = "", at: int | None = None) -> str:
    """Where a log is shown; with an offset, at the line there."""
    known = {"node": node_id, "file": file, "generation": generation, "at": at}
    where = urlencode({name: value for name, value in known.items() if value not in ("", None)})
    return f"{session_path(session)}log?{where}{HERE if at is not None else ''}"


def log_line_path(session: SessionId, node_id: str, file: str, line: int) -> str:
    """Where a log is shown at one of its lines."""
    return f"{session_path(session)}log?{urlencode({'node': node_id, 'file': file, 'line': line})}#L{line}"


def log_of_path(session: SessionId, **what: str | int) -> str:
    """The way to what a task or an actor wrote."""
    return f"{session_path(session)}log/of?{urlencode(what)}"


def compare_path(a: str, b: str = "") -> str:
    """Where two runs stand side by side; without the second one, where it is asked for."""
    return f"/compare?a={quote(a, safe='')}{f'&b={quote(b, safe=str())}' if b else ''}"
