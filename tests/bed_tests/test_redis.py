"""The bed's Redis: it ends with its run."""

from __future__ import annotations

from pathlib import Path

import pytest

from bed.processes import kill_all
from bed.redis import Redis

pytestmark = pytest.mark.bed


def test_redis_answers_and_is_found_again_by_the_end_of_its_run(tmp_path: Path) -> None:
    server = Redis(tmp_path)
    try:
        server.up()
        assert server.answers()
    finally:
        kill_all(tmp_path)
    assert not server.answers()
