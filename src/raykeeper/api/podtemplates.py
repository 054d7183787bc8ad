"""Reading pod templates and pods, which stay plain JSON: parts that are missing count as empty."""

from __future__ import annotations

from typing import Any

from raykeeper.api.meta import JSON


def pod_spec(template: JSON) -> JSON:
    """The `spec` of a pod template or pod."""
    return template.get("spec") or {}


def containers(template: JSON) -> list[JSON]:
    """The containers, without the init containers."""
    return pod_spec(template).get("containers") or []


def ray_container(template: JSON) -> JSON:
    """The container that runs Ray, which is the first; an empty one where there is none."""
    return next(iter(containers(template)), {})


def env_var(container: JSON, name: str) -> JSON | None:
    """The entry of that name in a container's `env`, whether it has a value or says where to find one.

    Of several, the first, by which KubeRay judges a spec. The process sees the last.
    """
    return next((entry for entry in container.get("env") or [] if entry.get("name") == name), None)


def env_value(container: JSON, name: str) -> str | None:
    """The literal value of an environment variable; None where there is none."""
    entry = env_var(container, name)
    value: Any = entry.get("value") if entry else None
    return value if isinstance(value, str) else None
