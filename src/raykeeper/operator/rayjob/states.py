"""The words in which a RayJob says how far it is. All of them are interface: Kueue and scripts read them."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from raykeeper.rayevents.states import ENDED_JOBS

# status.jobDeploymentStatus
NEW: Final = ""
INITIALIZING: Final = "Initializing"
WAITING: Final = "Waiting"
RUNNING: Final = "Running"
COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
VALIDATION_FAILED: Final = "ValidationFailed"
SUSPENDING: Final = "Suspending"
SUSPENDED: Final = "Suspended"
RETRYING: Final = "Retrying"

ENDED: Final = frozenset({COMPLETE, FAILED})
WITH_CLUSTER: Final = frozenset({WAITING, RUNNING})
"""The attempt has its cluster."""
UNSTARTED: Final = frozenset({NEW, VALIDATION_FAILED, SUSPENDED})
"""Nothing has been made of the job yet, or nothing is left of it."""

# status.jobStatus, Ray's own words
PENDING: Final = "PENDING"
SUCCEEDED: Final = "SUCCEEDED"
STOPPED: Final = "STOPPED"
JOB_FAILED: Final = "FAILED"
JOB_ENDS: Final = ENDED_JOBS


class Reason(StrEnum):
    """status.reason: why an attempt failed."""

    SUBMISSION_FAILED = "SubmissionFailed"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    PRE_RUNNING_DEADLINE_EXCEEDED = "PreRunningDeadlineExceeded"
    APP_FAILED = "AppFailed"
    STATUS_CHECK_TIMEOUT = "JobStatusCheckTimeoutExceeded"
    VALIDATION_FAILED = "ValidationFailed"
    HEAD_LOST = "HeadLost"
    """Ours: the head that had the job is gone, and with it all that Ray knew of the job."""
    CANNOT_START = "CannotStart"
    """Ours, where the user asked for it: a container will never start, whatever one waits for."""


FINAL_REASONS: Final = frozenset({Reason.DEADLINE_EXCEEDED, Reason.STATUS_CHECK_TIMEOUT, Reason.VALIDATION_FAILED})
"""Failures after which there is no other attempt."""


class SubmissionMode(StrEnum):
    """spec.submissionMode: who gives the job to Ray."""

    K8S_JOB = "K8sJobMode"
    HTTP = "HTTPMode"
    INTERACTIVE = "InteractiveMode"
    SIDECAR = "SidecarMode"
