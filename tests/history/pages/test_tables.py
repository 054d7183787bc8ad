"""Tables as people read them: numbers stand below each other, and say no more digits than anybody compares."""

from __future__ import annotations

import pytest

from raykeeper.history.pages.tasktables import in_words
from raykeeper.history.pages.widgets import table


def test_numbers_are_lined_up_at_their_right_under_their_header() -> None:
    shown = table("By function", ("Function", "Attempts", "In"), [("step", "1,200", "A")], numbers=("Attempts",))
    assert '<th scope="col" class="number">Attempts</th>' in shown
    assert '<td class="number">1,200</td><td>A</td>' in shown


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(None, ""), (0.0123, "12.3 ms"), (0.9999, "1 s"), (90.0, "90 s"), (600.0, "10 min"), (7.2e6, "2,000 h")],
)
def test_times_are_told_in_three_digits_and_never_in_powers_of_ten(seconds: float | None, words: str) -> None:
    assert in_words(seconds) == words
