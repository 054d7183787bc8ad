"""What an upgrade of a CRD would lose: fields and versions that stored objects may have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from raykeeper.api.meta import JSON

TAKEN_BACK: Final = frozenset({"workloadRef"})
"""Fields of pods that were alpha in Kubernetes 1.35 and that 1.36 does not have; KubeRay 1.6 has them in its CRDs."""


def lost_fields(old: JSON, new: JSON) -> list[str]:
    """Paths of fields that stored objects may have and that the new definition would drop from them."""
    schemas = {version["name"]: _schema(version) for version in new["spec"]["versions"]}
    stored = next(version for version in old["spec"]["versions"] if version["storage"])
    return list(_lost(_schema(stored), schemas.get(stored["name"], {}), ""))


def lost_versions(old: JSON, new: JSON) -> list[str]:
    """Versions in which objects may be stored and that the new definition does not have."""
    kept = {version["name"] for version in new["spec"]["versions"]}
    return [name for name in old.get("status", {}).get("storedVersions") or () if name not in kept]


def _schema(version: JSON) -> JSON:
    schema: JSON = version["schema"]["openAPIV3Schema"]
    return schema


def _lost(old: JSON, new: JSON, path: str) -> Iterator[str]:
    if new.get("x-kubernetes-preserve-unknown-fields"):
        return
    known = new.get("properties", {})
    for name, part in old.get("properties", {}).items():
        place = f"{path}.{name}".removeprefix(".")
        if name in known:
            yield from _lost(part, known[name], place)
        elif name not in TAKEN_BACK:
            yield place
    for key in ("items", "additionalProperties"):
        if isinstance(old.get(key), dict) and isinstance(new.get(key), dict):
            yield from _lost(old[key], new[key], path)
