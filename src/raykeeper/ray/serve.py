"""Ray Serve's API: which applications there are, how they are, and which there should be."""

from __future__ import annotations

from typing import Final

import msgspec

from raykeeper.api.meta import JSON
from raykeeper.errors import Unavailable
from raykeeper.ray.heads import Head, raise_for

APPLICATIONS_PATH: Final = "/api/serve/applications/"
DECLARATIVE: Final = f"{APPLICATIONS_PATH}?api_type=declarative"
PROXY_HEALTH_PATH: Final = "/-/healthz"
DEFAULT_APPLICATION: Final = "default"
"""What Serve calls an application that was given no name."""


class DeploymentStatus(msgspec.Struct, frozen=True):
    """One deployment of an application, in Serve's words."""

    status: str = ""
    message: str = ""


class ApplicationStatus(msgspec.Struct, frozen=True):
    """One application, in Serve's words."""

    status: str = ""
    message: str = ""
    deployments: dict[str, DeploymentStatus] = msgspec.field(default_factory=dict)


class _Applications(msgspec.Struct):
    applications: dict[str, ApplicationStatus] = msgspec.field(default_factory=dict)


async def serve_applications(head: Head) -> dict[str, ApplicationStatus]:
    """The applications that were deployed by a config, by name; none where Serve does not run."""
    answer = await head.get(DECLARATIVE)
    raise_for(head, "Serve applications", answer)
    try:
        found = msgspec.json.decode(answer.body, type=_Applications).applications
    except msgspec.DecodeError as exc:
        raise Unavailable(head.service, f"what it says about Serve cannot be read ({exc})") from exc
    return {name or DEFAULT_APPLICATION: application for name, application in found.items()}


async def put_serve_config(head: Head, config: JSON) -> None:
    """Have the applications be as the config says; those that are not in it go. Raises `HeadRefused`."""
    answer = await head.send("PUT", APPLICATIONS_PATH, msgspec.json.encode(config))
    raise_for(head, "Serve config", answer)


async def is_proxy_healthy(head: Head) -> bool:
    """Whether the proxy of Serve on a node takes requests; `head` leads to the node's serve port."""
    return (await head.get(PROXY_HEALTH_PATH)).status == 200
