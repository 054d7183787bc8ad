"""Reading pod templates and pods, which stay plain JSON: parts that are missing count as empty."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from raykeeper.api.containers import COLLECTOR_PROGRAM, HISTORY_COLLECTOR
from raykeeper.api.meta import JSON


def pod_spec(template: JSON) -> JSON:
    """The `spec` of a pod template or pod."""
    return template.get("spec") or {}


def containers(template: JSON) -> list[JSON]:
    """The containers, without the init containers."""
    return pod_spec(template).get("containers") or []


def has_collector(template: JSON) -> bool:
    """Whether a container or an init container collects the history."""
    found = [*containers(template), *(pod_spec(template).get("initContainers") or ())]
    return any(is_collector(container.get("name", ""), container.get("command") or ()) for container in found)


def is_collector(name: str, command: Sequence[str]) -> bool:
    """Whether a container is a collector: by the name that operators give it, or by the program that it runs."""
    return name == HISTORY_COLLECTOR or (bool(command) and PurePosixPath(command[0]).name == COLLECTOR_PROGRAM)


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
