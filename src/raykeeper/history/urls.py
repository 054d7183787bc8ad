"""A session as users name it, `<namespace>/<cluster>/<session>`, and the path of every page about it. Pure."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from raykeeper.errors import Misconfigured
from raykeeper.layout.keys import SessionId

LATEST = "latest"
"""In the place of a session's name: the one of that cluster that started last."""


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


def overview_path(session: SessionId) -> str:
    """Where a session is shown at a glance."""
    return f"{session_path(session)}overview"


def job_path(session: SessionId, job: str) -> str:
    """Where one of its jobs is shown, by its id or its submission's."""
    return f"{session_path(session)}job/{quote(job, safe='')}"


def search_path(session: SessionId) -> str:
    """Where a session is searched."""
    return f"{session_path(session)}search"


def log_path(session: SessionId, node_id: str, file: str, generation: str, at: int) -> str:
    """Where a log is shown around a place in it."""
    where = urlencode({"node": node_id, "file": file, "generation": generation, "at": at})
    return f"{session_path(session)}log?{where}"


def compare_path(a: str, b: str = "") -> str:
    """Where two runs stand side by side; without the second one, where it is asked for."""
    return f"/compare?a={quote(a, safe='')}{f'&b={quote(b, safe=str())}' if b else ''}"
