"""JSON merge patches (RFC 7386): the smallest change that turns one object into another, and its effect. Pure."""

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


def merged(target: JSON, patch: JSON) -> JSON:
    """The object after the patch, as the API server would make it. The target itself is not changed."""
    result = dict(target)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            known = result.get(name)
            result[name] = merged(known if isinstance(known, dict) else {}, value)
        else:
            result[name] = value
    return result
