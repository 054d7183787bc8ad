"""The object stores beside MinIO as pytest fixtures: one server of each kind per test run."""

from __future__ import annotations

import pytest

from bed.azurite import Azurite
from bed.fakegcs import FakeGcs
from bed.fixtures import run_folder
from bed.locks import file_lock
from bed.npm import npm_is_missing
from bed.seaweedfs import SeaweedFS


@pytest.fixture(scope="session")
def seaweedfs(request: pytest.FixtureRequest) -> SeaweedFS:
    """A second S3 server."""
    folder = run_folder(request.config) / "seaweedfs"
    with file_lock(folder / "start.lock"):
        server = SeaweedFS(folder)
        server.up()
    return server


@pytest.fixture(scope="session")
def azurite(request: pytest.FixtureRequest) -> Azurite:
    """Azure's Blob Storage; skipped where npm is not installed."""
    if cause := npm_is_missing():
        pytest.skip(f"Azurite comes from npm: {cause}")
    folder = run_folder(request.config) / "azurite"
    with file_lock(folder / "start.lock"):
        server = Azurite(folder)
        server.up()
    return server


@pytest.fixture(scope="session")
def fake_gcs(request: pytest.FixtureRequest) -> FakeGcs:
    """Google's Cloud Storage."""
    folder = run_folder(request.config) / "fake-gcs"
    with file_lock(folder / "start.lock"):
        server = FakeGcs(folder)
        server.up()
    return server
