"""JSON merge patches (RFC 7386): the smallest change that turns one object into another. Pure."""

from __future__ import annotations

from raykeeper.api.meta import JSON


def merge_patch_between(before: JSON, after: JSON) -> JSON:
    """The patch that makes `before` equal to `after`; empty when they are. Lists are replaced whole.

    Assumes that `after` has no nulls inside: a merge patch cannot write one.
    """
    patch: JSON = {name: None for name in before if name not in after}
    for name, value in after.items():
        known = before.get(name)
        if isinstance(value, dict) and isinstance(known, dict):
            if inner := merge_patch_between(known, value):
                patch[name] = inner
        elif name not in before or known != value:
            patch[name] = value
    return patch
