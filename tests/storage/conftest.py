"""Fixtures of the object store's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.object_store_settings import Stores


@pytest.fixture
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Stores:
    """Settings for buckets of this test's own, on any server."""
    return Stores(request, tmp_path)
