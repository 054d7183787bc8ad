"""How a submitter is doing, read from its Kubernetes Job or from its container. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from raykeeper.api.containers import JOB_SUBMITTER
from raykeeper.api.meta import JSON
from raykeeper.api.times import parse_time
from raykeeper.operator.rayjob.facts import (
    SubmitterFacts,
)
from raykeeper.operator.rayjob.states import JOB_ENDS
from raykeeper.operator.shared.troubles import Trouble


def job_outcome(job: JSON, pods: Iterable[JSON], trouble: Trouble | None) -> SubmitterFacts:
    """The submitter of K8sJobMode: what its Job says, and the last word that one of its pods left."""
    conditions = (job.get("status") or {}).get("conditions") or []
    ended = next((one for one in conditions if one["type"] in ("Complete", "Failed") and one["status"] == "True"), None)
    words = [word for pod in pods for word in [_last_word(_container_states(pod))] if word]
    if ended is None:
        return SubmitterFacts(trouble=trouble, ray_status=words[0] if words else "")
    has_failed = ended["type"] == "Failed"
    return SubmitterFacts(
        has_finished=True,
        has_failed=has_failed,
        finished_at=parse_time(ended.get("lastTransitionTime")),
        message=f"submitter: {ended.get('message') or ended.get('reason') or 'it failed'}" if has_failed else "",
        ray_status=words[0] if words else "",
    )


def sidecar_outcome(pod: JSON, most_restarts: int = 0) -> SubmitterFacts | None:
    """The submitter beside the head; None while the kubelet has not told of it.

    It has failed once it was started again so often and failed all the same.
    """
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    found = next((one for one in statuses if one["name"] == JOB_SUBMITTER), None)
    if found is None:
        return None
    ended = _last_end(found)
    if ended is None:
        return SubmitterFacts()
    has_failed = ended.get("exitCode", 0) != 0
    message = f"submitter: exit code {ended.get('exitCode')} {ended.get('message') or ended.get('reason') or ''}"
    restarts = found.get("restartCount", 0)
    if has_failed and restarts < most_restarts:
        again = f"{message.strip()}; the kubelet starts it again, {restarts + 1} of {most_restarts} times"
        return SubmitterFacts(trouble=Trouble("SubmitterRestarts", again))
    return SubmitterFacts(
        has_finished=True,
        has_failed=has_failed,
        finished_at=parse_time(ended.get("finishedAt")),
        message=message.strip() if has_failed else "",
        ray_status=_last_word([found]),
    )


def _last_end(container: JSON) -> JSON | None:
    """How a container ended that does not run: for good, or until the kubelet starts it again."""
    state, last = container.get("state") or {}, container.get("lastState") or {}
    ended: JSON | None = state.get("terminated") or (last.get("terminated") if "waiting" in state else None)
    return ended


def _container_states(pod: JSON) -> list[Any]:
    return (pod.get("status") or {}).get("containerStatuses") or []


def _last_word(statuses: Iterable[JSON]) -> str:
    """How the job ended, as a submitter of ours left it."""
    for status in statuses:
        message: str = ((status.get("state") or {}).get("terminated") or {}).get("message") or ""
        if message.strip() in JOB_ENDS:
            return message.strip()
    return ""
