"""What a RayJob says about itself in conditions, as kstatus reads them. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from raykeeper.api.rayjob import RayJob, RayJobStatus
from raykeeper.operator.rayjob.states import (
    COMPLETE,
    FAILED,
    RUNNING,
    STOPPED,
    SUSPENDED,
    VALIDATION_FAILED,
)
from raykeeper.operator.shared.conditions import Finding, updated
from raykeeper.operator.shared.troubles import Trouble

READY: Final = "Ready"
RECONCILING: Final = "Reconciling"
STALLED: Final = "Stalled"
INVALID: Final = "RayJobInvalid"
"""The spec was edited into something that cannot be worked on, while the job goes on by what it was started with."""
OURS: Final = frozenset({READY, RECONCILING, STALLED, INVALID})


def with_conditions(
    job: RayJob, status: RayJobStatus, trouble: Trouble | None, invalid: str, now: datetime
) -> RayJobStatus:
    """The status with its conditions and the generation they are about."""
    generation = job.metadata.generation
    findings = [*_findings(status, trouble), *([Finding(INVALID, "True", "InvalidSpec", invalid)] if invalid else [])]
    conditions = updated(status.conditions, findings, OURS, generation, now)
    return msgspec.structs.replace(status, conditions=conditions, observed_generation=generation)


def _findings(status: RayJobStatus, trouble: Trouble | None) -> list[Finding]:
    state = status.job_deployment_status
    if state == COMPLETE and status.job_status == STOPPED:
        return _three("False", "False", "True", "Stopped", f"Ray says {STOPPED}: {status.message}")
    if state == COMPLETE:
        return _three("True", "False", "False", "Complete", f"Ray says {status.job_status}")
    if state in (FAILED, VALIDATION_FAILED):
        return _three("False", "False", "True", status.reason or state, status.message)
    if state == SUSPENDED:
        return _three("False", "False", "False", SUSPENDED, "spec.suspend is true")
    if state == RUNNING and trouble is None:
        return _three("True", "False", "False", RUNNING, f"Ray says {status.job_status}")
    reason = trouble.reason if trouble else state or "New"
    is_stalled = "True" if trouble and trouble.is_hopeless else "False"
    return _three("False", "True", is_stalled, reason, trouble.message if trouble else "the next step is under way")


def _three(ready: str, reconciling: str, stalled: str, reason: str, message: str) -> list[Finding]:
    """The message stands where it explains something: beside Ready, and beside what else is true."""
    return [
        msgspec.convert({"type": kind, "status": value, "reason": reason, "message": said}, Finding)
        for kind, value in ((READY, ready), (RECONCILING, reconciling), (STALLED, stalled))
        for said in [message if kind == READY or value == "True" else ""]
    ]
