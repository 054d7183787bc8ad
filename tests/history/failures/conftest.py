"""A store with summaries of sessions, and a server on it whose clock stands still."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from raykeeper.history.settings import AccessSettings
from support.clocks import ManualClock
from support.history_scene import STARTED_AT, Scene, a_scene


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(now=STARTED_AT + timedelta(hours=8))


@pytest.fixture
def scene(tmp_path: Path, clock: ManualClock) -> Scene:
    """Asked on this machine alone, as `raykeeper history` is by default."""
    return a_scene(tmp_path, clock=clock, access=AccessSettings(answers_localhost_only=True))
