"""The Serve applications that there should be: `serveConfigV2`, by its content. Pure."""

from __future__ import annotations

import base64
import hashlib
import zlib
from dataclasses import dataclass
from typing import Final

import msgspec

from raykeeper.api.meta import JSON
from raykeeper.api.yaml_text import parse_mapping

SENT: Final = "raykeeper.io/serve-config"
"""Annotation of a RayCluster: which config was given to which start of its head."""
KEPT: Final = "raykeeper.io/serve-config-kept"
"""Annotation of a RayCluster: that config, packed. A cluster that is being replaced gets it again, with another
capacity, when the RayService has the config of the next one already."""
LONGEST_KEPT: Final = 100_000
"""Characters of that; all annotations of an object together may have 256 KiB."""
LONGEST_UNPACKED: Final = 3 << 20
"""Bytes; no object of Kubernetes is larger."""


@dataclass(frozen=True)
class ServeConfig:
    """What is sent to Serve, and how it is told apart from another."""

    body: JSON
    hash: str

    @property
    def has_applications(self) -> bool:
        return bool(self.body.get("applications"))

    @property
    def capacity(self) -> int | None:
        """Percentage of the replicas; None: Serve's own, which is all of them."""
        return self.body.get("target_capacity")

    def with_capacity(self, percent: int) -> ServeConfig:
        """The same applications with so much of their replicas. Serve knows it by this name in the config."""
        return _config_of({**self.body, "target_capacity": percent})

    def has_same_applications(self, other: ServeConfig) -> bool:
        """Whether the two differ in nothing but the capacity."""
        return self.with_capacity(0) == other.with_capacity(0)

    def packed(self) -> str:
        """As the text of an annotation."""
        return base64.b64encode(zlib.compress(msgspec.json.encode(self.body))).decode()

    def mark(self, head_instance: str) -> str:
        """The value of `SENT` once this head has it. A head that was started anew may have lost it."""
        return f"{self.hash} {head_instance}"


class _Application(msgspec.Struct):
    import_path: str


class _Config(msgspec.Struct):
    applications: list[_Application] | None = None


def parse_serve_config(text: str) -> ServeConfig:
    """The config in a text; blanks, comments and the order of keys make no difference. Raises `ValueError`."""
    body = parse_mapping(text)
    try:
        msgspec.convert(body, _Config)
    except msgspec.ValidationError as error:
        raise ValueError(f"it is no config of Ray Serve: {error}") from error
    return _config_of(body)


def unpacked(text: str) -> ServeConfig | None:
    """The config in an annotation; None where there is none, or nothing that we wrote."""
    try:
        packed = base64.b64decode(text, validate=True)
        plain = zlib.decompressobj().decompress(packed, LONGEST_UNPACKED)
        return _config_of(msgspec.json.decode(plain, type=dict)) if plain else None
    except (ValueError, zlib.error, msgspec.DecodeError):
        return None


def _config_of(body: JSON) -> ServeConfig:
    digest = hashlib.sha256(msgspec.json.encode(body, order="sorted")).hexdigest()
    return ServeConfig(body, digest[:32])
