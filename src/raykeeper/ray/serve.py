"""Ray Serve's API: which applications there are, how they are, and which there should be."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from raykeeper.api.meta import JSON
from raykeeper.errors import Unavailable
from raykeeper.ray.heads import Head, decode_answer, raise_for

APPLICATIONS_PATH: Final = "/api/serve/applications/"
DECLARATIVE: Final = f"{APPLICATIONS_PATH}?api_type=declarative"
PROXY_HEALTH_PATH: Final = "/-/healthz"
MAX_DEPLOYMENTS: Final = 10_000
"""Applications and deployments of one head, whose answer is kept until the next one."""
MESSAGE_CHARACTERS: Final = 16_000
"""Of each message of theirs."""
METRICS_PATH: Final = "/metrics"
_REQUESTS: Final = re.compile(rb"^ray_serve_num_http_requests(_total)?\{([^\n]*)\} ([0-9.eE+]{1,30})\s*$", re.MULTILINE)
"""A line of Prometheus' text format. Older versions of Ray count under the name without its end as well."""
_FAILED: Final = re.compile(rb'[{,]status_code="5[0-9][0-9]"')
_OF_NO_APPLICATION: Final = re.compile(rb'[{,]application=""')
_MOST: Final = 1 << 53
"""Above it a counter of Prometheus, which is a float, counts no more."""
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
    found = decode_answer(head, "Serve", answer, _Applications).applications
    if len(found) + sum(len(application.deployments) for application in found.values()) > MAX_DEPLOYMENTS:
        raise Unavailable(head.service, f"it names more than {MAX_DEPLOYMENTS} applications and deployments of Serve")
    return {name or DEFAULT_APPLICATION: _cut(application) for name, application in found.items()}


def _cut(application: ApplicationStatus) -> ApplicationStatus:
    deployments = {
        name: replace(one, message=one.message[:MESSAGE_CHARACTERS]) for name, one in application.deployments.items()
    }
    return replace(application, message=application.message[:MESSAGE_CHARACTERS], deployments=deployments)


class RequestCounts(NamedTuple):
    """Requests that the proxy of a node has answered since it was started."""

    answered: int = 0
    failed: int = 0
    """Those among them that were answered with 500 to 599."""


async def request_counts(head: Head) -> RequestCounts:
    """What the proxy of a node has counted; `head` leads to the node's metrics port. It may be ten seconds old."""
    answer = await head.get(METRICS_PATH)
    raise_for(head, "metrics", answer)
    return parse_request_counts(answer.body)


def parse_request_counts(metrics: bytes) -> RequestCounts:
    """The counts in a page of metrics. Health checks and paths that belong to no application do not count."""
    found = [match for match in _REQUESTS.finditer(metrics) if not _OF_NO_APPLICATION.search(b"{" + match[2])]
    totals = [match for match in found if match[1]] or found
    answered = sum(_number(match[3]) for match in totals)
    return RequestCounts(answered, sum(_number(match[3]) for match in totals if _FAILED.search(b"{" + match[2])))


def _number(text: bytes) -> int:
    try:
        return min(int(float(text)), _MOST)
    except (ValueError, OverflowError):
        return 0


async def put_serve_config(head: Head, config: JSON) -> None:
    """Have the applications be as the config says; those that are not in it go. Raises `HeadRefused`."""
    answer = await head.send("PUT", APPLICATIONS_PATH, msgspec.json.encode(config))
    raise_for(head, "Serve config", answer)


async def is_proxy_healthy(head: Head) -> bool:
    """Whether the proxy of Serve on a node takes requests; `head` leads to the node's serve port."""
    return (await head.get(PROXY_HEALTH_PATH)).status == 200
