"""`logs`: of pods that are there from Kubernetes, of those that are gone from the history."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.client.history import HistoryServer, NoHistory, newest_session, read_json, session_path
from raykeeper.client.observing import PODS, cluster_names, observe
from raykeeper.kube.errors import ApiError
from raykeeper.plugin.commands import ExitCode, NothingKnown, Scene, read_report_of, scene
from raykeeper.plugin.subjects import Place, Subject, WrongSubject

Write = Callable[[bytes], object]
_SILENCE_SECONDS = 24 * 3600.0
"""A followed log may say nothing for long."""
_ALL_LINES = 100_000_000


@dataclass(frozen=True)
class LogsWanted:
    """Which log, and how much of it."""

    pod: str = ""
    container: str = ""
    file: str = ""
    """A log file of Ray, from the history."""
    node: str = ""
    """Of that file."""
    tail: int | None = None
    is_followed: bool = False
    is_previous: bool = False
    from_history: bool = False


async def logs(place: Place, subject: Subject, wanted: LogsWanted, write: Write, warn: Callable[[str], object]) -> int:
    """Write the log. Raises NothingKnown where there is neither a pod nor a history."""
    async with scene(place, subject) as around:
        if not (wanted.from_history or wanted.file):
            pod = await _live_pod(around, wanted, warn)
            if pod is not None:
                await _write_pod_log(around, pod, wanted, write)
                return ExitCode.WELL
        await _write_history(around, wanted, write, warn)
    return ExitCode.WELL


async def _live_pod(around: Scene, wanted: LogsWanted, warn: Callable[[str], object]) -> JSON | None:
    """Of a job its submitter's pod, else the head's; None where there is none."""
    seen = await observe(around.kube, around.resource, around.key)
    if seen.object is None:
        return None
    if wanted.pod:
        pod = next((pod for pod in seen.pods if pod["metadata"]["name"] == wanted.pod), None)
        if pod is None:
            names = ", ".join(sorted(pod["metadata"]["name"] for pod in seen.pods)) or "none"
            raise WrongSubject(f"{around.subject} has no pod {wanted.pod!r}; it has {names}")
        return pod
    submitters = [pod for pod in seen.pods if labels.NODE_TYPE not in pod["metadata"].get("labels", {})]
    heads = [pod for pod in seen.pods if pod["metadata"].get("labels", {}).get(labels.NODE_TYPE) == labels.HEAD]
    for missing in seen.unread:
        warn(f"could not be read: {missing}")
    begun = [pod for pod in (*submitters, *heads) if pod.get("status", {}).get("phase") != "Pending"]
    return next(iter(begun), None)


async def _write_pod_log(around: Scene, pod: JSON, wanted: LogsWanted, write: Write) -> None:
    key = ObjectKey(around.key.namespace, pod["metadata"]["name"])
    query = {
        "container": wanted.container or pod["spec"]["containers"][0]["name"],
        "tailLines": wanted.tail,
        "follow": wanted.is_followed or None,
        "previous": wanted.is_previous or None,
    }
    stream = around.kube.stream(PODS.path(*key, "log"), query, silence=_SILENCE_SECONDS)
    async with contextlib.aclosing(stream):
        async for piece in stream:
            write(piece)


async def _write_history(around: Scene, wanted: LogsWanted, write: Write, warn: Callable[[str], object]) -> None:
    """The driver's log of a job, a file by its name, or else the list of files."""
    history = around.history
    if history is None:
        raise NothingKnown(f"{around.subject} has no pod with a log, and no history server is known (--history)")
    try:
        async for piece in _from_history(around, history, wanted, warn):
            write(piece)
    except NoHistory as exc:
        raise NothingKnown(f"{around.subject} has no pod with a log, and the history says: {exc}") from exc


async def _from_history(
    around: Scene, history: HistoryServer, wanted: LogsWanted, warn: Callable[[str], object]
) -> AsyncIterator[bytes]:
    prefix, job = await _session(around, history)
    if wanted.file:
        query = {"filename": wanted.file, "node_id": wanted.node, "lines": str(wanted.tail or _ALL_LINES)}
        given = urlencode({name: value for name, value in query.items() if value})
        async for piece in history.stream(f"{prefix}/api/v0/logs/file?{given}"):
            yield piece
    elif job:
        answer = await read_json(history, f"{prefix}/api/jobs/{quote(job, safe='')}/logs")
        text = str(answer.get("logs", ""))
        yield ("".join(text.splitlines(keepends=True)[-wanted.tail :]) if wanted.tail else text).encode()
    else:
        warn("the pods are gone; these are the files of the history, print one with --file and --node:")
        yield await _listed(history, prefix)


async def _session(around: Scene, history: HistoryServer) -> tuple[str, str]:
    """The path of its newest session, and the job's id of a RayJob."""
    if around.resource.kind == "RayCluster":
        return await newest_session(history, *around.key), ""
    if around.resource.kind == "RayService":
        with contextlib.suppress(ApiError):
            item = await around.kube.find(around.resource, around.key)
            for name in cluster_names("RayService", item) if item else ():
                return await newest_session(history, around.key.namespace, name), ""
    report = await read_report_of(around)
    if not report.get("cluster") or report.get("session") in (None, "", "none"):
        raise NoHistory(f"{around.subject} never had a Ray session")
    path = session_path(str(report["namespace"]), str(report["cluster"]), str(report["session"]))
    return path, str(report.get("job") or "")


async def _listed(history: HistoryServer, prefix: str) -> bytes:
    answer = await read_json(history, f"{prefix}/api/v0/nodes?limit=10000")
    lines: list[str] = []
    for node in answer["data"]["result"]["result"]:
        listed = await read_json(history, f"{prefix}/api/v0/logs?node_id={quote(node['node_id'], safe='')}")
        names = sorted(name for group in listed["data"]["result"].values() for name in group)
        lines += [f"{node['node_id']} {name}" for name in names]
    return "".join(f"{line}\n" for line in lines).encode()
