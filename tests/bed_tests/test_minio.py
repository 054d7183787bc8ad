"""MinIO is the real server, with a bucket, and keeps its objects over a crash."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bed.minio import Minio
from bed.rest import Refused


def test_an_object_is_read_back_as_it_was_written(minio: Minio, bucket: str) -> None:
    minio.s3.put(f"/{bucket}/a folder/ünïcode.txt", b"content")
    assert minio.s3.get(f"/{bucket}/a folder/ünïcode.txt") == b"content"


def test_wrong_keys_are_refused(minio: Minio) -> None:
    stranger = replace(minio.s3, secret_key="wrong")
    with pytest.raises(Refused, match="SignatureDoesNotMatch"):
        stranger.put("/bed/object", b"content")


@pytest.mark.bed
def test_objects_survive_a_crash(tmp_path: Path) -> None:
    server = Minio.create(tmp_path)
    try:
        server.up()
        server.s3.put("/bed/object", b"content")
        server.process.kill()
        Minio.attach(tmp_path).up()
        assert server.s3.get("/bed/object") == b"content"
    finally:
        server.down()
