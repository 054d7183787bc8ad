"""Ray's job API as a head answers it, with jobs that a test moves on by hand."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web

from raykeeper.api.raycluster import RayCluster
from raykeeper.operator.rayhead.address import HeadAddress
from raykeeper.operator.rayhead.client import ANSWER_SECONDS, LIMITS, DirectHead, Heads
from raykeeper.ray.heads import Head
from support.scripted_server import served


@dataclass
class JobsHead:
    """All clusters of a test have this one head."""

    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    submitted: list[str] = field(default_factory=list)
    """Ids in the order in which Ray took them; one that is refused is not among them."""
    asked: int = 0
    """How often somebody wanted to know about a job."""
    stopped: list[str] = field(default_factory=list)
    failure: str = ""
    """While set, every answer is a 500 with this as JSON."""
    refusal: str = ""
    """While set, every submission is a 400 with this text."""
    loses_answers: bool = False
    """While set, a submission is taken and answered with a 500."""
    outcome: str = ""
    """While set, every job that it knows has come to this end."""
    knows_all: bool = False
    """Whether it knows every job that it is asked about, as if a submitter had been there."""
    token: str = ""
    """While set, who does not show it is refused."""

    def move(self, job_id: str, status: str, message: str = "") -> None:
        """A job does something, also one that was submitted by others."""
        known = self.jobs.setdefault(job_id, {"submission_id": job_id, "type": "SUBMISSION", "start_time": _now()})
        known |= {"status": status, "message": message}
        if status in ("SUCCEEDED", "FAILED", "STOPPED"):
            known.setdefault("end_time", _now())

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if self.failure:
            return web.json_response({"error": self.failure}, status=500)
        if self.token and request.headers.get("X-Ray-Authorization") != f"Bearer {self.token}":
            return web.Response(status=401)
        parts = request.path.strip("/").split("/")[2:]
        self.asked += request.method == "GET"
        if self.outcome and request.method == "GET" and (self.knows_all or parts[0] in self.jobs):
            self.move(parts[0], self.outcome)
        if request.method == "POST" and not parts:
            return self._submit(json.loads(await request.read()))
        if not parts or parts[0] not in self.jobs:
            return web.Response(status=404, text=f"Job {parts[0] if parts else ''} does not exist")
        if request.method == "POST" and parts[1:] == ["stop"]:
            self.stopped.append(parts[0])
            self.move(parts[0], "STOPPED")
            return web.json_response({"stopped": True})
        return web.json_response(self.jobs[parts[0]])

    def _submit(self, body: dict[str, Any]) -> web.Response:
        job_id = body["submission_id"]
        if self.refusal:
            return web.Response(status=400, text=self.refusal)
        if job_id in self.jobs:
            text = f"Job with submission_id {job_id} already exists. Please use a different submission_id."
            return web.Response(status=500, text=text)
        self.submitted.append(job_id)
        self.move(job_id, "PENDING")
        if self.loses_answers:
            return web.json_response({"error": "the answer is lost"}, status=500)
        return web.json_response({"job_id": job_id, "submission_id": job_id})


def _now() -> int:
    """As Ray counts: milliseconds since 1970."""
    return int(time.time() * 1000)


@dataclass(frozen=True)
class HeadsAt(Heads):
    """Heads are where a test says."""

    url_of: Callable[[str], str] = str
    """The URL for the name of a cluster."""

    def of(self, cluster: RayCluster, address: HeadAddress, seconds: float = ANSWER_SECONDS) -> Head:
        host, _, port = self.url_of(cluster.metadata.name).removeprefix("http://").partition(":")
        there = HeadAddress(host, int(port), address.backend)
        limits = replace(LIMITS, answer_seconds=seconds)
        return DirectHead(self.kube.ensure_writable, self.tokens, cluster, there, limits)


@asynccontextmanager
async def a_jobs_head(head: JobsHead) -> AsyncIterator[str]:
    """The URL at which the head listens."""
    async with served(head.handle) as url:
        yield url
