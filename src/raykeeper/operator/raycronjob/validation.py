"""What must hold for a RayCronJob before it makes RayJobs. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, tzinfo

from raykeeper.api import names
from raykeeper.api.raycronjob import RayCronJob
from raykeeper.api.syntax import is_dns_1035_label
from raykeeper.operator.gates import FeatureGates
from raykeeper.operator.raycronjob.schedule import InvalidSchedule, parse_schedule
from raykeeper.operator.raycronjob.zones import parse_zone
from raykeeper.operator.rayjob.validation import JobCandidate, job_spec_violations
from raykeeper.operator.shared.violations import Violation, has_value


def violations(cron: RayCronJob, gates: FeatureGates) -> list[Violation]:
    """All that is wrong with a RayCronJob; empty for one that can be worked on."""
    template = JobCandidate(cron.spec.job_template, cron.metadata.annotations, gates, "spec.jobTemplate")
    return [*_metadata(cron), *_schedule(cron), *job_spec_violations(template)]


def _metadata(cron: RayCronJob) -> Iterator[Violation]:
    name = cron.metadata.name
    if len(name) > names.MAX_RAYCRONJOB_NAME_LENGTH:
        cure = f"use at most {names.MAX_RAYCRONJOB_NAME_LENGTH} characters, its RayJobs are called after it"
        yield has_value("metadata.name", name, cure, "Metadata")
    if not is_dns_1035_label(name):
        cure = "use lower-case letters, digits and dashes, starting with a letter, as its RayJobs must"
        yield has_value("metadata.name", name, cure, "Metadata")


def _schedule(cron: RayCronJob) -> Iterator[Violation]:
    zone: tzinfo = UTC
    try:
        zone = parse_zone(cron.spec.time_zone)
    except ValueError as error:
        yield has_value("spec.timeZone", cron.spec.time_zone, str(error))
    try:
        parse_schedule(cron.spec.schedule, zone)
    except InvalidSchedule as error:
        yield has_value("spec.schedule", cron.spec.schedule, str(error))
