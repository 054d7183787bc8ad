"""Volumes in containers. What the user mounted stays; nothing is mounted over it."""

from __future__ import annotations

from raykeeper.api.meta import JSON


def mount_at(container: JSON, path: str) -> JSON | None:
    """What a container has mounted at this very path."""
    mounts: list[JSON] = container.get("volumeMounts") or []
    return next((mount for mount in mounts if mount["mountPath"].rstrip("/") == path), None)


def volume_at(spec: JSON, container: JSON, path: str) -> JSON:
    """The volume of the pod that a container has mounted at this very path; empty where there is none."""
    mount = mount_at(container, path) or {}
    volumes: list[JSON] = spec.get("volumes") or []
    return next((volume for volume in volumes if volume["name"] == mount.get("name")), {})


def add_mount(container: JSON, mount: JSON) -> None:
    """Mount it, unless something is mounted there."""
    if mount_at(container, mount["mountPath"]) is None:
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]


def attach(spec: JSON, container: JSON, volume: JSON, mount: JSON) -> None:
    """Mount a volume, unless something is mounted there, and add it to the pod, unless one of its name is."""
    if mount_at(container, mount["mountPath"]) is not None:
        return
    add_mount(container, mount)
    volumes = spec.get("volumes") or []
    if all(existing["name"] != volume["name"] for existing in volumes):
        spec["volumes"] = [*volumes, volume]
