"""What a backend is, and one prefix of one of its buckets as a frozen value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from raykeeper.errors import Misconfigured
from raykeeper.storage.backends.values import Values

Environment = Mapping[str, str]


@dataclass(frozen=True)
class HttpRequest:
    """A request as data, for the few that opendal cannot make."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = b""


@dataclass(frozen=True)
class Field:
    """One setting of a backend, under each name that a user may give it by."""

    name: str
    """Ours, and that of the URL's parameter."""
    variable: str
    """KubeRay's environment variable; empty where KubeRay has none."""
    file_key: str = ""
    """KubeRay's key in the JSON file; empty where KubeRay has none."""
    in_url: bool = False
    """Whether a store URL may carry it as a parameter. Secrets never are."""


@dataclass(frozen=True)
class Backend:
    """One kind of store. A new kind is a new row in `table.py` and nothing else."""

    name: str
    """KubeRay's name, as in `STORAGE_BACKEND`."""
    scheme: str
    """The scheme of our store URLs."""
    fields: tuple[Field, ...]
    make_settings: Callable[[Values, str, Environment], StoreSettings]
    """Settings from what was given, the prefix and the environment. Stops by name on what cannot be used."""
    aliases: tuple[str, ...] = ()
    """Other names that users may write."""
    opendal_scheme: str = ""
    """What opendal calls it; empty for a local folder, which opendal does not serve."""
    bucket_option: str = "bucket"
    """What opendal calls the bucket."""
    bucket_request: Callable[[StoreSettings], Callable[[datetime], HttpRequest] | None] | None = None
    """How a missing bucket is made at a given time, if these settings hold the keys to sign with."""

    def __repr__(self) -> str:
        return self.name


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
    """Keys and tokens by opendal's names; empty where the environment gives credentials."""

    def describe(self) -> str:
        """The store as a URL without secrets, such as `s3://bucket/prefix at http://minio:9000`."""
        path = f"{self.bucket}/{self.root}".rstrip("/")
        return f"{self.backend.scheme}://{path}" + (f" at {self.endpoint}" if self.endpoint else "")


def parse_root(setting: str, text: str) -> str:
    """A prefix without slashes at its ends; stops by name on one that a store cannot hold."""
    root = text.strip("/")
    if any(part in ("", ".", "..") for part in root.split("/")) and root:
        raise Misconfigured(setting, text, "a prefix has no empty part and neither '.' nor '..' in it")
    return root
