"""A merge patch changes what differs and nothing else."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from raykeeper.kube.merge import merge_patch_between

values = st.recursive(
    st.integers() | st.text(max_size=3) | st.booleans() | st.lists(st.integers(), max_size=3),
    lambda inner: st.dictionaries(st.text(max_size=2), inner, max_size=4),
)
objects = st.dictionaries(st.text(max_size=2), values, max_size=5)


def applied(target: Any, patch: Any) -> Any:
    """RFC 7386, as the API server does it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = applied(result.get(name), value)
    return result


@given(objects, objects)
def test_a_patch_leads_from_one_object_to_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert applied(before, merge_patch_between(before, after)) == after


@given(objects)
def test_equal_objects_need_no_patch(item: dict[str, Any]) -> None:
    assert merge_patch_between(item, item) == {}


def test_only_what_differs_is_sent() -> None:
    before = {"state": "", "head": {"podIP": "1", "podName": "a"}, "old": 1}
    after = {"state": "ready", "head": {"podIP": "2", "podName": "a"}}
    assert merge_patch_between(before, after) == {"state": "ready", "head": {"podIP": "2"}, "old": None}
