"""A MinIO server on one folder: the S3 that object store tests run against."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bed.binaries import BINARIES, build
from bed.daemons import LOOPBACK
from bed.errors import BedError
from bed.ports import free_port
from bed.processes import Process
from bed.rest import Refused
from bed.s3 import S3
from bed.waiting import wait_until

BUCKET = "bed"


@dataclass(frozen=True)
class MinioLayout:
    """Ports and keys of one server; kept as a file in its folder."""

    port: int
    console_port: int
    access_key: str
    secret_key: str
    address: str = LOOPBACK

    @staticmethod
    def file(folder: Path) -> Path:
        return folder / "minio.json"


class Minio:
    """Handle of one server. `endpoint`, `access_key` and `secret_key` are what clients need; bucket `bed` is there."""

    def __init__(self, folder: Path, layout: MinioLayout) -> None:
        self.folder = folder
        self.endpoint = f"http://{layout.address}:{layout.port}"
        self.access_key = layout.access_key
        self.secret_key = layout.secret_key
        self.s3 = S3(self.endpoint, layout.access_key, layout.secret_key)
        self._data = folder / "minio"
        command = [
            str(BINARIES["minio"].path),
            "server",
            str(self._data),
            f"--address={layout.address}:{layout.port}",
            f"--console-address={LOOPBACK}:{layout.console_port}",
            "--quiet",
        ]
        environment = {
            "MINIO_ROOT_USER": layout.access_key,
            "MINIO_ROOT_PASSWORD": layout.secret_key,
            "MINIO_BROWSER": "off",
            "MINIO_UPDATE": "off",  # it asks its maker for newer versions otherwise
        }
        self.process = Process("minio", command, folder, environment)

    @classmethod
    def create(cls, folder: Path, address: str = LOOPBACK) -> Minio:
        """A new one in `folder`, with port and keys of its own; `up()` starts it at `address`."""
        keys = f"bed-{secrets.token_hex(4)}", secrets.token_hex(16)
        layout = MinioLayout(free_port(address), free_port(), *keys, address=address)
        folder.mkdir(parents=True, exist_ok=True)
        MinioLayout.file(folder).touch(mode=0o600)
        MinioLayout.file(folder).write_bytes(msgspec.json.encode(layout))
        return cls(folder, layout)

    @classmethod
    def attach(cls, folder: Path) -> Minio:
        """The one that was created in `folder` before, running or not."""
        try:
            return cls(folder, msgspec.json.decode(MinioLayout.file(folder).read_bytes(), type=MinioLayout))
        except (FileNotFoundError, msgspec.DecodeError) as cause:
            raise BedError(f"there is no MinIO in {folder}") from cause

    def up(self) -> None:
        """Start it and make its bucket."""
        build(["minio"])
        self._data.mkdir(parents=True, exist_ok=True)
        self.process.start()
        # Its health pages say "ready" some time before it takes requests.
        wait_until(f"MinIO ready (log: {self.process.log_file})", self._has_made_bucket)

    def down(self) -> None:
        """Stop it; the objects stay in the folder."""
        self.process.stop()

    def make_bucket(self, name: str) -> None:
        """Make a bucket; nothing happens when it is there."""
        try:
            self.s3.put(f"/{name}")
        except Refused as refused:
            if refused.status != 409:
                raise

    def _has_made_bucket(self) -> bool:
        try:
            self.make_bucket(BUCKET)
        except ConnectionError:
            return False
        except Refused as refused:
            if refused.status != 503:
                raise
            return False
        return True
