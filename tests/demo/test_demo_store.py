"""The store of a demo: made where it is missing, and asked how far the events in it go."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from raykeeper.demo.run import run
from raykeeper.demo.screen import Screen
from raykeeper.demo.settings import DemoSettings
from raykeeper.demo.stored import newest_event
from raykeeper.errors import Misconfigured
from raykeeper.layout.keys import EventSegmentKey, SessionId

SESSION = SessionId("local", "demo", "session_1")
NOON_NS = 1_794_830_400_000_000_000


def _seal(store: Path, session: SessionId, sealed_ns: int) -> None:
    file = store / EventSegmentKey(session, "ab", sealed_ns, 0).key
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


def test_the_newest_event_of_a_session_is_that_of_any_hour(tmp_path: Path) -> None:
    for sealed_ns in (NOON_NS - 1, NOON_NS + 1_999, NOON_NS - 4_000_000_000_000):
        _seal(tmp_path, SESSION, sealed_ns)
    _seal(tmp_path, SessionId("local", "demo", "session_2"), NOON_NS * 2)
    assert newest_event(tmp_path, SESSION) == datetime(2026, 11, 16, 12, 0, 0, 1, tzinfo=UTC)


def test_a_session_without_events_has_no_newest(tmp_path: Path) -> None:
    assert newest_event(tmp_path, SESSION) is None


def test_a_folder_that_cannot_be_made_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Misconfigured, match=r"^--folder=.* it must be a folder to write to"):
        run(DemoSettings(tmp_path / "file" / "store"), Screen())
