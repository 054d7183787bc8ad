"""Which names a pattern means. The oracle is Python's own `Path.glob` on a folder with the same files."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykeeper.history.logs.names import InvalidPattern, group_of, matching_names

FILES = (
    "raylet.out",
    "raylet.err",
    ".hidden",
    "worker-a1-01000000-17.out",
    "events/event_GCS.log",
    "events/event_RAYLET.log",
    "serve/app/replica.log",
    "serve/controller.log",
    "[odd].log",
)
PATTERNS = (
    "*",
    "*.out",
    "raylet*",
    "events/*",
    "events/*GCS*",
    "*/*",
    "**",
    "**/*.log",
    "serve/**",
    "serve/**/*",
    "**/app/*",
    "?aylet.out",
    "[rw]*",
    "[!r]*",
    "[[]odd].log",
    "raylet.out",
    "serve",
    "serve/",
    "*/",
    "./raylet.out",
    "nothing*",
    "**/**",
    "events//*",
)


def python_says(folder: Path, pattern: str) -> list[str]:
    found = (f"{path.relative_to(folder)}{'/' if path.is_dir() else ''}" for path in folder.glob(pattern))
    return sorted(set(found))


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_means_what_it_means_on_the_node(logs: Path, pattern: str) -> None:
    assert matching_names(FILES, pattern) == python_says(logs, pattern)


@pytest.mark.parametrize("pattern", ["", ".", "..", "../*", "/etc/*", "a/../../b", "a**", "**b/c", "/"])
def test_a_pattern_that_leads_outside_or_is_none_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidPattern):
        matching_names(FILES, pattern)


@given(st.text("*a?[]!-/.", max_size=40))
def test_no_pattern_takes_long_or_breaks(pattern: str) -> None:
    began = time.process_time()
    with contextlib.suppress(InvalidPattern):
        matching_names(["a" * 200, "a/" * 20 + "a"], pattern)
    assert time.process_time() - began < 2.0


def test_a_pattern_full_of_stars_takes_no_time() -> None:
    assert matching_names(["a" * 255], "*a" * 120 + "b") == []


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("worker-a1-01000000-17.out", "worker_out"),
        ("worker-a1-01000000-17.err", "worker_err"),
        ("python-core-worker-a1_17.log", "core_worker"),
        ("python-core-driver-01ff_17.log", "driver"),
        ("raylet.out.1", "raylet"),
        ("gcs_server.err", "gcs_server"),
        ("log_monitor.log", "internal"),
        ("monitor.log", "autoscaler"),
        ("dashboard_agent.log", "agent"),
        ("dashboard.log", "dashboard"),
        ("events/", "internal"),
    ],
)
def test_files_are_grouped_as_ray_groups_them(name: str, group: str) -> None:
    assert group_of(name) == group
