"""How a child that drifted comes back: by a patch, or by being made anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from raykeeper.api.meta import JSON
from raykeeper.operator.shared.children.metadata import metadata_patch
from raykeeper.operator.shared.owner import Owner


@dataclass(frozen=True)
class Patch:
    """A JSON merge patch with what is ours and differs; all else stays as it is."""

    body: JSON


@dataclass(frozen=True)
class Replace:
    """The API server does not allow the change: the object must be deleted and created."""

    because: str
    cuts_connections: bool = False
    """Whether running pods would lose each other over it; then it waits until the owner has none."""
    meanwhile: Patch | None = None
    """What can be repaired until then."""
    held_by: str = ""
    """A finalizer that is taken off first: it waits for pods which are to stay, and to find the new object."""


Drift = Patch | Replace | None
"""None: the object is as it should be."""

DriftOf = Callable[[Owner, JSON, JSON], Drift]
"""A controller's rule: what became of a child, given its owner, how it should be and how it is. Pure."""


def drift(desired: JSON, actual: JSON, fields: Mapping[str, Any] | None = None) -> Patch | None:
    """The patch of an object's metadata and of the given other fields, which the caller found to differ."""
    metadata = metadata_patch(desired, actual)
    body: JSON = {"metadata": metadata} if metadata else {}
    body |= fields or {}
    return Patch(body) if body else None


def differing(desired: JSON, actual: JSON, *fields: str) -> JSON:
    """Those of the fields that are not equal, as they should be; None deletes one that should not be there."""
    return {
        field: desired.get(field) for field in fields if (desired.get(field) or None) != (actual.get(field) or None)
    }


def overlay(desired: JSON, actual: JSON) -> JSON:
    """The merge patch that gives every desired field its value, and leaves fields alone that nobody asked for."""
    patch: JSON = {}
    for key, wanted in desired.items():
        found = actual.get(key)
        if isinstance(wanted, dict) and isinstance(found, dict):
            nested = overlay(wanted, found)
            if nested:
                patch[key] = nested
        elif wanted != found:
            patch[key] = wanted
    return patch
