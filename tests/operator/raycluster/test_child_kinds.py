"""Every kind of child has a place on the API server that the operator knows."""

from __future__ import annotations

import pytest

from rayclusters.children_cases import CASES, RANDOM_BYTES
from raykeeper.operator.raycluster.children.desired import desired_children
from raykeeper.operator.shared.children.keys import CHILD_RESOURCES


@pytest.mark.parametrize("name", CASES)
def test_the_operator_knows_where_each_child_is_written_to(name: str) -> None:
    builder, settings = CASES[name]
    children = desired_children(builder.build(), settings, RANDOM_BYTES).desired
    assert {child["kind"] for child in children} <= CHILD_RESOURCES.keys()
