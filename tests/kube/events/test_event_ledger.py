"""How occurrences become few Events, and what is dropped first."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykeeper.kube.events.ledger import COMBINED, EventLedger, EventLimits
from raykeeper.kube.events.series import (
    NOTE_BYTES,
    EventType,
    ObjectRef,
    Occurrence,
    Series,
    desired_event,
    event_name,
    shortened,
)
from support.clocks import ManualClock

CLUSTER = ObjectRef("ray.io/v1", "RayCluster", "team", "demo", "uid-1")


def an_occurrence(
    note: str = "created pod", *, reason: str = "CreatedPod", kind: EventType = "Normal", about: ObjectRef = CLUSTER
) -> Occurrence:
    return Occurrence("raycluster-controller", about, kind, reason, "Create", note)


class Book:
    """A ledger with a clock moved by hand and a writer that always succeeds."""

    def __init__(self, limits: EventLimits | None = None) -> None:
        self.clock = ManualClock()
        self.dropped: Counter[str] = Counter()
        self.ledger = EventLedger(self._drop, limits)

    def _drop(self, cause: str) -> None:
        self.dropped[cause] += 1

    def record(self, occurrence: Occurrence, times: int = 1) -> None:
        for _ in range(times):
            self.ledger.record(occurrence, self.clock.steady(), self.clock.now())

    def write(self) -> list[Series]:
        """Everything that is due, as written."""
        written = []
        while series := self.ledger.next_write(self.clock.steady()):
            self.ledger.written(series, series.count, self.clock.steady())
            written.append(series)
        return written


def test_an_occurrence_is_written_at_once_and_once() -> None:
    book = Book()
    book.record(an_occurrence())
    assert [series.count for series in book.write()] == [1]
    assert book.write() == []
    assert book.ledger.next_due() is None


def test_repeats_before_the_first_write_are_one_event_with_a_count() -> None:
    book = Book()
    book.record(an_occurrence(), times=5)
    (series,) = book.write()
    assert desired_event(series, "pod")["series"]["count"] == 5


def test_repeats_are_written_ever_more_rarely() -> None:
    book = Book()
    book.record(an_occurrence())
    book.write()
    moments = []
    for second in range(1, 1000):
        book.clock.advance(1)
        book.record(an_occurrence())
        moments += [second] * len(book.write())
    assert moments == [11, 32, 73, 154, 315, 616, 917]


def test_the_last_count_is_written_after_the_repeats_stopped() -> None:
    book = Book()
    book.record(an_occurrence())
    book.write()
    book.record(an_occurrence(), times=3)
    due = book.ledger.next_due()
    assert due is not None
    book.clock.advance(due - book.clock.steady())
    assert [series.count for series in book.write()] == [4]


def test_after_a_pause_the_same_occurrence_is_a_new_event() -> None:
    book = Book()
    book.record(an_occurrence())
    (first,) = book.write()
    book.clock.advance(361)
    book.record(an_occurrence())
    (second,) = book.write()
    assert first.name != second.name
    assert second.count == 1


def test_many_notes_of_one_reason_are_combined() -> None:
    book = Book()
    for number in range(1000):
        book.record(an_occurrence(f"created pod worker-{number}"))
    *single, combined = book.write()
    assert [series.occurrence.note for series in single] == [f"created pod worker-{number}" for number in range(10)]
    assert combined.occurrence.note == f"{COMBINED}created pod worker-10"
    assert combined.count == 990
    assert not book.dropped


def test_a_note_that_has_its_own_event_keeps_it_when_others_are_combined() -> None:
    book = Book()
    for number in range(20):
        book.record(an_occurrence(f"note {number}"))
    book.record(an_occurrence("note 3"))
    assert {series.occurrence.note: series.count for series in book.write()}["note 3"] == 2


def test_an_object_that_floods_us_is_cut_off_and_refilled() -> None:
    book = Book()
    for number in range(40):
        book.record(an_occurrence(reason=f"Reason{number}"))
    assert len(book.write()) == 25
    assert book.dropped == {"object limit": 15}
    book.record(an_occurrence(reason="Failed", kind="Warning"))
    assert len(book.write()) == 1, "normal events must not use up what warnings may need"
    book.clock.advance(60)
    book.record(an_occurrence(reason="Later"))
    assert len(book.write()) == 1


def test_when_too_many_wait_the_oldest_normal_one_goes_first_then_warnings() -> None:
    book = Book(EventLimits(waiting=3, object_burst=100))
    book.record(an_occurrence(reason="Warned1", kind="Warning"))
    for number in range(4):
        book.record(an_occurrence(reason=f"Reason{number}"))
    for number in range(2, 5):
        book.record(an_occurrence(reason=f"Warned{number}", kind="Warning"))
    assert [series.occurrence.reason for series in book.write()] == ["Warned2", "Warned3", "Warned4"]
    assert book.dropped == {"buffer full": 5}


def test_a_write_that_did_not_happen_comes_again() -> None:
    book = Book()
    book.record(an_occurrence())
    series = book.ledger.next_write(book.clock.steady())
    assert series is not None
    book.ledger.put_back(series, book.clock.steady())
    assert book.write() == [series]


def test_a_series_that_was_given_up_begins_anew() -> None:
    book = Book()
    book.record(an_occurrence())
    (series,) = book.write()
    book.ledger.forget(series)
    book.record(an_occurrence())
    assert [again.name for again in book.write()] != [series.name]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3), st.floats(0, 400)), max_size=80))
def test_every_occurrence_is_counted_in_an_event_or_as_dropped(steps: list[tuple[int, int, float]]) -> None:
    limits = EventLimits(notes=3, object_burst=5, waiting=4, series=6)
    book = Book(limits)
    written: dict[str, int] = {}
    lost = 0
    for note, reason, seconds in steps:
        book.record(an_occurrence(f"note {note}", reason=f"Reason{reason}"))
        book.clock.advance(seconds)
        written |= {series.name: series.count for series in book.write()}
    book.clock.advance(1000)
    written |= {series.name: series.count for series in book.write()}
    lost = book.dropped.total()
    assert sum(written.values()) + lost == len(steps)
    assert book.ledger.waiting() == 0


@given(st.text(max_size=3000))
def test_a_shortened_note_fits_and_says_that_it_was_cut(text: str) -> None:
    short = shortened(text, NOTE_BYTES)
    assert len(short.encode()) <= NOTE_BYTES
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))


@pytest.mark.parametrize("name", ["demo", "x" * 253, "a" * 235 + "-.-.-" + "b" * 13])
def test_an_events_name_is_its_objects_and_a_number_within_the_limit(name: str) -> None:
    made = event_name(name, 1_800_000_000_000_000_000)
    assert len(made) <= 253
    stem, _, number = made.rpartition(".")
    assert name.startswith(stem)
    assert stem[-1].isalnum()
    assert int(number, 16) == 1_800_000_000_000_000_000
