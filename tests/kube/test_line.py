"""Namespaces take turns at what they share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykeeper.kube.line import Line

Key = tuple[str, int]
EVERYBODY = {"a", "b", "c", "d", "e"}


def namespace_of(key: Key) -> str:
    return key[0]


def a_line(*keys: Key) -> Line[Key]:
    line = Line(namespace_of)
    for since, key in enumerate(keys):
        line.add(key, float(since))
    return line


def taken(line: Line[Key], allowed: set[str] = EVERYBODY) -> list[Key]:
    keys = []
    while (key := line.first(allowed.__contains__)) is not None:
        line.take(key)
        keys.append(key)
    return keys


def test_namespaces_take_turns_and_in_each_the_first_comes_first() -> None:
    line = a_line(("a", 1), ("a", 2), ("a", 3), ("b", 1), ("c", 1), ("c", 2))
    assert len(line) == 6
    assert taken(line) == [("a", 1), ("b", 1), ("c", 1), ("a", 2), ("c", 2), ("a", 3)]
    assert not line


def test_a_namespace_that_may_not_is_passed_over_and_keeps_its_turn() -> None:
    line = a_line(("a", 1), ("b", 1), ("a", 2))
    assert taken(line, {"b"}) == [("b", 1)]
    line.add(("b", 2), 9.0)
    assert taken(line) == [("a", 1), ("b", 2), ("a", 2)]


def test_a_key_that_is_removed_costs_its_namespace_no_turn() -> None:
    line = a_line(("a", 1), ("b", 1), ("a", 2))
    assert line.remove(("a", 1)) == 0.0
    assert ("a", 1) not in line
    assert ("a", 2) in line
    assert taken(line) == [("a", 2), ("b", 1)]


@given(st.lists(st.tuples(st.sampled_from(sorted(EVERYBODY)), st.integers(0, 50)), unique=True))
def test_whatever_waits_is_handed_out_once_and_in_order_within_its_namespace(keys: list[Key]) -> None:
    order = taken(a_line(*keys))
    assert sorted(order) == sorted(keys)
    for namespace in EVERYBODY:
        assert [key for key in order if key[0] == namespace] == [key for key in keys if key[0] == namespace]


@given(st.integers(1, 1000))
def test_a_newcomer_waits_for_one_key_of_each_other_namespace(crowd: int) -> None:
    line = a_line(*(("a", number) for number in range(crowd)), *(("b", number) for number in range(crowd)))
    line.add(("c", 0), 0.0)
    assert taken(line).index(("c", 0)) == 2


def test_taking_what_does_not_wait_is_our_bug() -> None:
    with pytest.raises(KeyError):
        a_line().take(("a", 1))
