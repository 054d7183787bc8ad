"""Conditions: what is the case with an object, in the shape all of Kubernetes uses."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from raykeeper.api.fields import Int64, Time
from raykeeper.api.structs import ApiStruct

ConditionStatus = Literal["True", "False", "Unknown"]

_LABEL_NAME = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])"
_DNS_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"


# Limits and patterns are those of Kubernetes' own metav1.Condition.
class Condition(ApiStruct, frozen=True):
    """One observation about an object, with the time since which it holds."""

    type: Annotated[str, msgspec.Meta(max_length=316, pattern=rf"^({_DNS_SUBDOMAIN}/)?{_LABEL_NAME}$")]
    """What is observed; a list holds each type once."""
    status: ConditionStatus
    """Whether it is the case."""
    reason: Annotated[
        str, msgspec.Meta(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    ]
    """Why, in one word for programs."""
    message: Annotated[str, msgspec.Meta(max_length=32768)]
    """Why, in a sentence for people; may be empty."""
    last_transition_time: Time
    """Since when the status is what it is."""
    observed_generation: Annotated[Int64, msgspec.Meta(ge=0)] = 0
    """The generation of the object this was observed at; older than the object's own means out of date."""


def find_condition(conditions: tuple[Condition, ...], type_: str) -> Condition | None:
    """The condition of that type, if there is one."""
    return next((condition for condition in conditions if condition.type == type_), None)


def is_true(conditions: tuple[Condition, ...], type_: str) -> bool:
    """Whether there is a condition of that type and it is True."""
    found = find_condition(conditions, type_)
    return found is not None and found.status == "True"
