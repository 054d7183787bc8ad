"""Which store to talk to, in one frozen value; where it was read from is not its business."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from raykeeper.errors import Misconfigured

Backend = Literal["s3", "gcs", "azureblob", "aliyunoss", "local"]

_SCHEMES: Mapping[Backend, str] = {
    "s3": "s3",
    "gcs": "gs",
    "azureblob": "azblob",
    "aliyunoss": "oss",
    "local": "file",
}


@dataclass(frozen=True)
class StoreSettings:
    """One prefix of one bucket."""

    backend: Backend
    """Kind of store."""
    bucket: str
    """The bucket, the Azure container, or the absolute path of the local folder."""
    root: str = ""
    """Prefix of every key, without slashes at its ends."""
    endpoint: str = ""
    """URL of the server; empty where the backend knows its own."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What else opendal needs to know, by its names; none of it is secret."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Keys and tokens by opendal's names; empty where the surroundings give credentials."""

    def describe(self) -> str:
        """The store as a URL without secrets, such as `s3://bucket/prefix at http://minio:9000`."""
        path = f"{self.bucket}/{self.root}".rstrip("/")
        return f"{_SCHEMES[self.backend]}://{path}" + (f" at {self.endpoint}" if self.endpoint else "")


def parse_root(setting: str, text: str) -> str:
    """A prefix without slashes at its ends; stops by name on one that a store cannot hold."""
    root = text.strip("/")
    if any(part in ("", ".", "..") for part in root.split("/")) and root:
        raise Misconfigured(setting, text, "a prefix has no empty part and neither '.' nor '..' in it")
    return root
