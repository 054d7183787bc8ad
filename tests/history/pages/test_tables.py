"""Numbers and times as people read them: below each other, and in no more digits than anybody compares."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from raykeeper.history.http.pages.task_tables import in_words
from raykeeper.history.http.pages.timeline_svg import Scale, axis
from raykeeper.history.http.pages.widgets import table


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


def test_an_axis_tells_how_long_after_the_beginning_its_lines_are() -> None:
    begin = datetime(2026, 11, 15, 20, tzinfo=UTC)
    shown = axis(Scale(begin, begin + timedelta(minutes=8)))
    assert "<span>+ 2\u00a0min</span><span>+ 4\u00a0min</span>" in shown
    assert shown.count("<time") == 2
