"""RayCronJob: RayJobs made by a time table."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from raykeeper.api.conditions import Condition
from raykeeper.api.fields import Int32, Int64, Time
from raykeeper.api.markers import AtomicList, MapList
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
    concurrency_policy: Literal["Allow", "Forbid", "Replace"] | None = None
    """What happens when a RayJob is due while another runs: both run (`Allow`, also when unset), the new one is left
    out (`Forbid`), or the old one is deleted first (`Replace`). Raykeeper only."""
    starting_deadline_seconds: Annotated[Int64, msgspec.Meta(ge=0)] | None = None
    """How late a RayJob may be made; what is later is left out. No limit when unset. Raykeeper only."""
    successful_jobs_history_limit: Annotated[Int32, msgspec.Meta(ge=0)] | None = None
    """How many RayJobs that succeeded are kept; all when unset. Raykeeper only."""
    failed_jobs_history_limit: Annotated[Int32, msgspec.Meta(ge=0)] | None = None
    """How many RayJobs that failed are kept; all when unset. Raykeeper only."""


class ActiveRayJob(ApiStruct, frozen=True):
    """A RayJob that has not ended."""

    name: str = ""
    """Its name."""
    uid: str = ""
    """Its uid."""


class RayCronJobStatus(ApiStruct, frozen=True):
    """What was made."""

    last_schedule_time: Time | None = None
    """The time in the schedule that a RayJob was last made for."""
    last_successful_time: Time | None = None
    """When a RayJob last succeeded. Raykeeper only."""
    active: Annotated[tuple[ActiveRayJob, ...], AtomicList()] = ()
    """The RayJobs that have not ended. Raykeeper only."""
    observed_generation: Int64 = 0
    """The generation of the spec that this status is about. Raykeeper only."""
    conditions: Annotated[tuple[Condition, ...], MapList("type")] = ()
    """What is the case, and since when: `Ready`, `Stalled`. Raykeeper only."""


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
