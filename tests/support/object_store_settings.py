"""Settings of the real object stores of the bed, read as a user would give them: by KubeRay's variables."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.settings.sources import read_store_settings

ROOT = "some/root"

LOCAL = "local"
REMOTE = [pytest.param(name, marks=pytest.mark.bed) for name in ("minio", "seaweedfs", "azurite", "fake_gcs")]
EVERY_STORE = [LOCAL, *REMOTE]


@dataclass(frozen=True)
class Stores:
    """Makes settings for buckets of the servers that a test asks for."""

    request: pytest.FixtureRequest
    folder: Path

    def settings(self, server: str, bucket: str | None = None, root: str = ROOT) -> StoreSettings:
        """A place on `server` that nobody else uses: a bucket, made where the product does not make it itself."""
        name = f"test-{uuid.uuid4().hex[:10]}" if bucket is None else bucket
        if server == "seaweedfs" and bucket is None:
            name, root = "ready", f"{name}/{root}"  # its buckets have volumes of their own, and those are few
        if server == "fake_gcs" and bucket is None:
            self.request.getfixturevalue("fake_gcs").make_bucket(name)
        backend, environment = self._environment(server, name)
        return read_store_settings(backend, root, environment)

    def _environment(self, server: str, bucket: str) -> tuple[str, dict[str, str]]:
        if server == LOCAL:
            return "local", {"LOCAL_STORAGE_DIR": str(self.folder / bucket)}
        running = self.request.getfixturevalue(server)
        if server == "azurite":
            string = running.connection_string
            return "azureblob", {"AZURE_STORAGE_CONTAINER": bucket, "AZURE_STORAGE_CONNECTION_STRING": string}
        if server == "fake_gcs":
            return "gcs", {"GCS_BUCKET": bucket, "STORAGE_EMULATOR_HOST": running.host}
        keys = {"AWS_ACCESS_KEY_ID": running.access_key, "AWS_SECRET_ACCESS_KEY": running.secret_key}
        return "s3", {"S3_BUCKET": bucket, "S3_ENDPOINT": running.endpoint, "S3FORCE_PATH_STYLE": "true", **keys}
