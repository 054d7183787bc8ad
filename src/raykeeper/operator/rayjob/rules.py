"""The form of a state machine: rules in their order, each with a state, a condition in words, and a decision. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from raykeeper.api.rayjob import RayJob, RayJobStatus
from raykeeper.operator.rayjob.deadlines import next_deadline
from raykeeper.operator.rayjob.facts import (
    Action,
    Facts,
    Step,
)
from raykeeper.operator.rayjob.retries import failed_status
from raykeeper.operator.rayjob.states import FAILED, RETRYING, Reason, SubmissionMode
from raykeeper.operator.shared.troubles import Trouble


@dataclass(frozen=True)
class View:
    """All that a rule looks at, and the steps it may take."""

    job: RayJob
    facts: Facts
    now: datetime

    @property
    def status(self) -> RayJobStatus:
        return self.job.status

    @property
    def mode(self) -> str:
        """How this attempt is submitted. Editing the spec does not change it for an attempt that has its cluster."""
        began_in = self.facts.cluster.submission_mode if self.facts.cluster else ""
        return began_in or self.job.spec.submission_mode

    @property
    def uses_others_cluster(self) -> bool:
        return bool(self.job.spec.cluster_selector)

    @property
    def fails_fast(self) -> bool:
        return self.job.metadata.annotations.get(FAIL_FAST) == "true"

    @property
    def has_submitter(self) -> bool:
        """Whether something beside the operator gives the job to Ray."""
        return self.mode in (SubmissionMode.K8S_JOB, SubmissionMode.SIDECAR)

    def step(
        self,
        *actions: Action,
        look_at: datetime | None = None,
        trouble: Trouble | None = None,
        status: RayJobStatus | None = None,
    ) -> Step:
        """Do these, say this, and look again at the next deadline at the latest."""
        moments = [moment for moment in (look_at, next_deadline(self.job, self.now)) if moment is not None]
        return Step(status or self.status, actions, min(moments, default=None), trouble)

    def stay(self, *actions: Action, look_at: datetime | None = None, trouble: Trouble | None = None) -> Step:
        return self.step(*actions, look_at=look_at, trouble=trouble)

    def go(self, state: str, *actions: Action, **changes: object) -> Step:
        """Another state, with what else changes in the status."""
        changed = msgspec.structs.replace(self.status, job_deployment_status=state, **changes)
        return Step(changed, actions, self.now)

    def fail(self, reason: Reason, message: str, *actions: Action, **changes: object) -> Step:
        """The attempt failed: try again, or let the job fail."""
        changed = msgspec.structs.replace(self.status, **changes)
        return Step(failed_status(self.job, changed, reason, message, self.now), actions, self.now)


Decision = Callable[[View], Step | None]


@dataclass(frozen=True)
class Rule:
    """One row of the table of transitions."""

    sources: tuple[str, ...]
    when: str
    target: str
    decide: Decision


FAILURE: Final = f"{FAILED} or {RETRYING}"
FAIL_FAST: Final = "raykeeper.io/fail-fast"
"""Annotation: `true` lets an attempt fail as soon as one of its containers can never start."""


def rule(*sources: str, to: str) -> Callable[[Decision], Rule]:
    """Makes a row of the table out of a function, whose docstring says when it applies; else it answers None."""

    def row(decide: Decision) -> Rule:
        return Rule(sources, " ".join((decide.__doc__ or "").split()), to, decide)

    return row
