"""The table of backends. What a backend is called, reads and needs stands in its row and nowhere else."""

from __future__ import annotations

from raykeeper.storage.backends.azure import AZURE
from raykeeper.storage.backends.backend import Backend
from raykeeper.storage.backends.gcs import GCS
from raykeeper.storage.backends.local import LOCAL
from raykeeper.storage.backends.oss import OSS
from raykeeper.storage.backends.s3 import S3

BACKENDS: tuple[Backend, ...] = (S3, GCS, AZURE, OSS, LOCAL)
BY_NAME = {name: backend for backend in BACKENDS for name in (backend.name, *backend.aliases)}
BY_SCHEME = {backend.scheme: backend for backend in BACKENDS}
