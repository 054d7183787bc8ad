"""A program that has not opened a store yet has not paid for one: the collector listens before it imports opendal."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ["opendal", "aiohttp", "http.client", "duckdb"]
MODULES = [
    "raykeeper.storage.store",
    "raykeeper.storage.errors",
    "raykeeper.storage.opening",
    "raykeeper.storage.settings.sources",
    "raykeeper.storage.settings.urls",
]


def heavy_after(statements: str) -> list[str]:
    """Which heavy modules a fresh Python has loaded after some statements."""
    program = f"import sys; {statements}; print([name for name in {HEAVY} if name in sys.modules])"
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    return [name for name in HEAVY if f"'{name}'" in output]


@pytest.mark.parametrize("module", MODULES)
def test_importing_loads_nothing_heavy(module: str) -> None:
    assert heavy_after(f"import {module}") == []


def test_a_local_store_loads_nothing_heavy() -> None:
    opened = "from raykeeper.storage.opening import open_store"
    settings = "from raykeeper.storage.settings.urls import parse_store_url"
    assert heavy_after(f"{opened}; {settings}; open_store(parse_store_url('file:///folder', {{}}))") == []


def test_a_remote_store_loads_opendal_alone() -> None:
    opened = "from raykeeper.storage.opening import open_store"
    settings = "from raykeeper.storage.settings.urls import parse_store_url"
    assert heavy_after(f"{opened}; {settings}; open_store(parse_store_url('s3://b', {{}}))") == ["opendal"]
