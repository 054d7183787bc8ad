"""RayCronJob: RayJobs made by a time table."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from raykeeper.api.fields import Time
from raykeeper.api.meta import Object, Resource
from raykeeper.api.rayjob import RayJobSpec
from raykeeper.api.structs import ApiStruct, RayObject, parse_part


class RayCronJobSpec(ApiStruct, frozen=True):
    """When RayJobs are made, and which."""

    schedule: str
    """Five fields of cron, or a word such as `@daily`."""
    job_template: RayJobSpec
    """Spec of each RayJob."""
    time_zone: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    """Time zone of the schedule, such as `Europe/Berlin`; that of the operator when unset."""
    suspend: bool | None = None
    """Whether no RayJobs are made for now. Those that run go on."""


class RayCronJobStatus(ApiStruct, frozen=True):
    """What was made."""

    last_schedule_time: Time | None = None
    """The time in the schedule that a RayJob was last made for."""


class RayCronJob(RayObject, frozen=True):
    """RayJobs made by a time table."""

    spec: RayCronJobSpec
    """When RayJobs are made, and which."""
    status: RayCronJobStatus = RayCronJobStatus()
    """What was made."""

    @classmethod
    def from_object(cls, item: Object) -> RayCronJob:
        """A cached object as a struct, made anew by each call; raises `msgspec.ValidationError` for a wrong spec."""
        return cls(item.metadata, parse_part(item.spec, RayCronJobSpec), parse_part(item.status, RayCronJobStatus))


RAY_CRON_JOBS: Final[Resource[Object]] = Resource("ray.io", "v1", "raycronjobs", "RayCronJob", Object)
"""Cached as bytes; read with `RayCronJob.from_object`."""
