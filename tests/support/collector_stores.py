"""An S3 server as collectors are told of it, and what is in a bucket of it."""

from __future__ import annotations

from bed.minio import Minio
from bed.seaweedfs import SeaweedFS
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.sources import read_store_settings


def s3_environment(server: Minio | SeaweedFS, bucket: str, endpoint: str = "") -> dict[str, str]:
    """KubeRay's variables for a bucket, reached at another address where one is given."""
    return {
        "STORAGE_BACKEND": "s3",
        "S3_BUCKET": bucket,
        "S3_ENDPOINT": endpoint or server.endpoint,
        "S3_REGION": "test",
        "S3FORCE_PATH_STYLE": "true",
        "AWS_ACCESS_KEY_ID": server.access_key,
        "AWS_SECRET_ACCESS_KEY": server.secret_key,
    }


async def objects_in(server: Minio | SeaweedFS, bucket: str, root: str = "") -> dict[str, bytes]:
    """Every object below a root, by key."""
    store = open_store(read_store_settings("s3", root, s3_environment(server, bucket)))
    return {stat.key: await store.get(stat.key) async for stat in store.list("")}
