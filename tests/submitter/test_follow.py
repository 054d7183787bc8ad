"""A job is given to Ray once, and its log is printed once, whatever happens to the connection."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field

import pytest
from aiohttp import WSCloseCode, web

from raykeeper.clock import SystemClock
from raykeeper.errors import Unavailable
from raykeeper.ray.credentials import StaticToken
from raykeeper.ray.errors import HeadRefused, RayRefused
from raykeeper.ray.jobs import JobSubmission
from raykeeper.submitter.follow import JobForgotten, Pace, Submitter
from raykeeper.submitter.settings import SubmitterSettings
from support.scripted_server import served

LINES = [f"line {number} ünï\n" for number in range(40)]
FAST = Pace(look_seconds=0.01, patience_seconds=20)


@dataclass
class LoggingHead:
    """Ray's job API with one job that has written its log and ended."""

    status: str = ""
    """Empty while nobody submitted it."""
    cuts: list[int] = field(default_factory=list)
    """After how many lines each connection is cut; further ones are not."""
    unhealthy: int = 0
    """How many looks at its health fail."""
    submissions: int = 0
    token: str = ""
    refusal: str = ""
    forgets: bool = False
    """Once the log was cut, it does not know the job any more."""
    closes_early: int = 0
    """How many connections are ended properly though the job goes on."""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if self.token and request.headers.get("X-Ray-Authorization") != f"Bearer {self.token}":
            return web.Response(status=401)
        if request.path == "/api/gcs_healthz":
            self.unhealthy -= 1
            return web.Response(status=503 if self.unhealthy >= 0 else 200, text="success")
        if request.method == "POST":
            return await self._submit(request)
        if not self.status:
            return web.Response(status=404)
        if request.path.endswith("/logs/tail"):
            return await self._tail(request)
        return web.json_response({"submission_id": "mine", "type": "SUBMISSION", "status": self.status})

    async def _submit(self, request: web.BaseRequest) -> web.Response:
        if self.refusal:
            return web.Response(status=400, text=self.refusal)
        self.submissions += 1
        self.status = "RUNNING"
        return web.json_response(json.loads(await request.read()))

    async def _tail(self, request: web.BaseRequest) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        cut = self.cuts.pop(0) if self.cuts else None
        text = "".join(LINES[:cut])
        for start in range(0, len(text), 100):  # pieces that are no lines, and other ones after a cut
            await socket.send_str(text[start : start + 100])
        if cut is not None:
            if self.forgets:
                self.status = ""
            transport = request.transport
            if transport is not None:
                await asyncio.sleep(0)
                transport.abort()
            return socket
        if self.closes_early > 0:
            self.closes_early -= 1
        else:
            self.status = "SUCCEEDED"
        await socket.close(code=WSCloseCode.OK)
        return socket


async def follow(head: LoggingHead, token: str = "", pace: Pace = FAST) -> tuple[str, str]:
    """How the job ended, and everything that was printed."""
    printed: list[str] = []
    async with served(head.handle) as url:
        settings = SubmitterSettings(url, JobSubmission("python job.py", "mine"), StaticToken(token))
        ended = await Submitter(settings, printed.append, SystemClock(), pace).run()
    return ended, "".join(printed)


async def test_a_job_is_submitted_and_its_log_printed() -> None:
    head = LoggingHead()
    ended, printed = await follow(head)
    assert (ended, head.submissions) == ("SUCCEEDED", 1)
    assert printed == "Job 'mine' was submitted; its log follows\n" + "".join(LINES)


async def test_after_cuts_the_log_goes_on_where_it_was() -> None:
    head = LoggingHead(cuts=[3, 1, 25, 0, 25, 39])
    ended, printed = await follow(head)
    assert (ended, head.submissions) == ("SUCCEEDED", 1)
    assert printed.partition("\n")[2] == "".join(LINES)


async def test_a_log_that_ends_before_its_job_is_taken_up_again() -> None:
    head = LoggingHead(closes_early=2)
    ended, printed = await follow(head)
    assert (ended, printed.count(LINES[0])) == ("SUCCEEDED", 1)


async def test_a_job_that_ray_knows_is_not_submitted_again() -> None:
    head = LoggingHead(status="RUNNING")
    _, printed = await follow(head)
    assert head.submissions == 0
    assert printed.startswith("Job 'mine' was submitted before")


async def test_ray_is_waited_for() -> None:
    head = LoggingHead(unhealthy=3)
    _, printed = await follow(head)
    assert printed.count("Waiting for Ray Dashboard GCS to become healthy") == 1


async def test_a_token_is_shown_and_its_want_is_told() -> None:
    ended, _ = await follow(LoggingHead(token="secret"), token="secret")
    assert ended == "SUCCEEDED"
    with pytest.raises(RayRefused):
        await follow(LoggingHead(token="secret"), token="wrong")


async def test_a_job_that_ray_does_not_want_is_not_tried_again() -> None:
    with pytest.raises(HeadRefused, match="runtime_env is wrong"):
        await follow(LoggingHead(refusal="runtime_env is wrong"))


async def test_a_job_that_the_head_forgot_is_not_submitted_again() -> None:
    head = LoggingHead(cuts=[5], forgets=True)
    with pytest.raises(JobForgotten, match="job mine"):
        await follow(head)
    assert head.submissions == 1


async def test_a_job_that_ended_is_told_though_its_log_cannot_be_had() -> None:
    head = LoggingHead(status="FAILED", cuts=[0] * 100_000)
    ended, _ = await follow(head, pace=Pace(look_seconds=0.01, patience_seconds=0.3))
    assert ended == "FAILED"


async def test_a_head_that_stays_silent_is_given_up() -> None:
    head = LoggingHead(status="RUNNING", cuts=[0] * 100_000)
    with pytest.raises(Unavailable, match="log of job mine"):
        await follow(head, pace=Pace(look_seconds=0.01, patience_seconds=0.3))
