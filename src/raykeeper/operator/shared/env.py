"""Environment variables of containers, as the JSON they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from raykeeper.api.meta import JSON


def literal(name: str, value: str) -> JSON:
    return {"name": name, "value": value}


def from_field(name: str, path: str) -> JSON:
    """A variable with the value of a field of the pod (downward API)."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def from_label(name: str, label: str) -> JSON:
    return from_field(name, f"metadata.labels['{label}']")


def from_secret(name: str, secret: str, key: str) -> JSON:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def env_of(container: JSON) -> list[JSON]:
    """A container's variables, as a list of its own."""
    return list(container.get("env") or ())


def missing(env: Sequence[JSON], candidates: Iterable[JSON]) -> list[JSON]:
    """The candidates whose names are not taken."""
    taken = {entry["name"] for entry in env}
    return [candidate for candidate in candidates if candidate["name"] not in taken]
