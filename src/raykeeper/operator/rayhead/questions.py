"""The questions that controllers have heads asked in the background."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from raykeeper.api.meta import JSON
from raykeeper.ray.heads import Head
from raykeeper.ray.jobs import JobInfo, job_info
from raykeeper.ray.serve import (
    ApplicationStatus,
    RequestCounts,
    is_proxy_healthy,
    put_serve_config,
    request_counts,
    serve_applications,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Question(Generic[T]):
    """Something to ask a head again and again. Two are the same where name and place are."""

    name: str
    place: str
    """Which head: `HeadAddress.authority`. Another head is another question, so old answers do not count."""
    ask: Callable[[], Awaitable[T]] = field(compare=False)
    """May raise `RaykeeperError`; anything else is a bug."""
    every_seconds: float = field(compare=False, default=3.0)
    """How long after one answer it is asked again."""


def job_question(
    head: Head, submission_id: str, moment: str = "", every_seconds: float = 3.0
) -> Question[JobInfo | None]:
    """What a submitted job is doing; the answer None says that the head knows no such job.

    At another moment it is another question: that a job was unknown before it was submitted says nothing afterwards.
    """
    name = f"job {submission_id} {moment}"
    return Question(name, head.service, lambda: job_info(head, submission_id), every_seconds)


def serve_question(head: Head, config: str = "", every_seconds: float = 2.0) -> Question[dict[str, ApplicationStatus]]:
    """How the applications of Ray Serve are, by name. With another config it is another question: what was said before
    is about other applications.
    """
    return Question(f"serve {config}", head.service, lambda: serve_applications(head), every_seconds)


def deploy_question(head: Head, mark: str, config: JSON, every_seconds: float = 10.0) -> Question[None]:
    """Has Serve take a config; the answer says that it did. Sent again while the question is followed."""
    return Question(f"deploy {mark}", head.service, lambda: put_serve_config(head, config), every_seconds)


def proxy_question(head: Head, every_seconds: float = 2.0) -> Question[bool]:
    """Whether the proxy of Ray Serve on a node takes requests; `head` leads to the node's serve port."""
    return Question("serve proxy", head.service, lambda: is_proxy_healthy(head), every_seconds)


def requests_question(head: Head, every_seconds: float = 5.0) -> Question[RequestCounts]:
    """How many requests Ray Serve on a node has answered; `head` leads to the node's metrics port."""
    return Question("serve requests", head.service, lambda: request_counts(head), every_seconds)
