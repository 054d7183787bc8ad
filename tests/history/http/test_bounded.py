"""A map of bounded size forgets what was not used for the longest time."""

from __future__ import annotations

from raykeeper.history.bounded import Bounded


def test_the_longest_unused_value_goes_first() -> None:
    known: Bounded[str, int] = Bounded(2)
    known.put("a", 1)
    known.put("b", 2)
    assert known.get("a") == 1
    known.put("c", 3)
    assert (known.get("a"), known.get("b"), known.get("c"), len(known)) == (1, None, 3, 2)


def test_weights_count_and_a_new_value_replaces_the_weight_of_the_old() -> None:
    known: Bounded[str, str] = Bounded(10)
    known.put("a", "long", weight=9)
    known.put("a", "short", weight=2)
    known.put("b", "other", weight=8)
    assert (known.get("a"), known.get("b")) == ("short", "other")
    known.put("c", "too heavy", weight=11)
    assert ("c" in known, len(known)) == (False, 2)
