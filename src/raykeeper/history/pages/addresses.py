"""Where the pages about a session are; the one place their paths are spelled. Pure."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from raykeeper.history.pages.frame import Crumb
from raykeeper.layout.keys import SessionId


def session_path(session: SessionId) -> str:
    """Where a session's dashboard is; everything about the session is below it."""
    names = (session.namespace, session.cluster, session.session)
    return f"/s/{'/'.join(quote(name, safe='') for name in names)}/"


def report_path(session: SessionId, job: str | None = None) -> str:
    """Where it says why a session, or one of its jobs, failed."""
    return f"{session_path(session)}report{f'/{quote(job, safe=str())}' if job else ''}"


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


def session_crumbs(session: SessionId) -> tuple[Crumb, ...]:
    """The way from the start page to whatever is about a session."""
    cluster = f"{session.namespace} / {session.cluster}"
    only_these = f"/?namespace={quote(session.namespace, safe='')}&cluster={quote(session.cluster, safe='')}"
    return Crumb("Sessions", "/"), Crumb(cluster, only_these)
