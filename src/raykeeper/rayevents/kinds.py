"""The types of Ray's events and the key under which each carries its payload."""

from __future__ import annotations

import re
from enum import StrEnum


class EventType(StrEnum):
    """`eventType` of an event, as far as Ray 2.60 knows them. Later ones are kept all the same."""

    TASK_DEFINITION = "TASK_DEFINITION_EVENT"
    TASK_LIFECYCLE = "TASK_LIFECYCLE_EVENT"
    TASK_PROFILE = "TASK_PROFILE_EVENT"
    ACTOR_TASK_DEFINITION = "ACTOR_TASK_DEFINITION_EVENT"
    ACTOR_DEFINITION = "ACTOR_DEFINITION_EVENT"
    ACTOR_LIFECYCLE = "ACTOR_LIFECYCLE_EVENT"
    DRIVER_JOB_DEFINITION = "DRIVER_JOB_DEFINITION_EVENT"
    DRIVER_JOB_LIFECYCLE = "DRIVER_JOB_LIFECYCLE_EVENT"
    SUBMISSION_JOB_DEFINITION = "SUBMISSION_JOB_DEFINITION_EVENT"
    SUBMISSION_JOB_LIFECYCLE = "SUBMISSION_JOB_LIFECYCLE_EVENT"
    NODE_DEFINITION = "NODE_DEFINITION_EVENT"
    NODE_LIFECYCLE = "NODE_LIFECYCLE_EVENT"
    WORKER_DEFINITION = "WORKER_DEFINITION_EVENT"
    WORKER_LIFECYCLE = "WORKER_LIFECYCLE_EVENT"
    PLACEMENT_GROUP_DEFINITION = "PLACEMENT_GROUP_DEFINITION_EVENT"
    PLACEMENT_GROUP_LIFECYCLE = "PLACEMENT_GROUP_LIFECYCLE_EVENT"
    PLATFORM = "PLATFORM_EVENT"


_IRREGULAR = {EventType.TASK_PROFILE: "task_profile_events"}  # the one payload whose key is plural
_UNDERSCORE = re.compile(r"_([a-z])")


def payload_key(event_type: EventType) -> str:
    """Where the payload is in an event, such as `taskDefinitionEvent`."""
    return _UNDERSCORE.sub(lambda found: found[1].upper(), snake_payload_key(event_type))


def snake_payload_key(event_type: EventType) -> str:
    """The same with `RAY_DASHBOARD_AGGREGATOR_AGENT_PRESERVE_PROTO_FIELD_NAME` set: `task_definition_event`."""
    return _IRREGULAR.get(event_type, event_type.value.lower())
