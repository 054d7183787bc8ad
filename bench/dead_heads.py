"""What Ray heads that do not answer cost, and whether anything else waits for them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator

from bench.figures import Figure
from bench.resources import cpu_seconds
from rayclusters.manifests import a_cluster
from raykeeper.api.meta import ObjectKey
from raykeeper.clock import SystemClock
from raykeeper.kube.proxied import Backend
from raykeeper.operator.rayhead.address import HeadAddress
from raykeeper.operator.rayhead.client import LIMITS, Heads
from raykeeper.operator.rayhead.poller import HeadPoller, OwnerKey
from raykeeper.operator.rayhead.questions import Question, job_question
from raykeeper.ray.dashboard import Dashboard
from raykeeper.ray.jobs import JobInfo
from support.conditions import until
from support.kube_clients import anonymous, connected

DEAD = 1000
DEAD_NAMESPACES = 10
SETTLE_SECONDS = 60.0  # until each dead head has been asked four times, and is asked rarely
WATCHED_SECONDS = 60.0
ALONE_SECONDS = 5.0
TICK_SECONDS = 0.02
EVERY_SECONDS = 1.0
LIVE = OwnerKey("RayJob", ObjectKey("ns", "live"))
BODY = b'{"submission_id": "a", "status": "RUNNING", "message": "runs", "type": "SUBMISSION"}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)


def run() -> Iterator[Figure]:
    """A thousand RayJobs whose heads take connections and never answer, and one whose head does."""
    percent, oldest, late, late_alone = asyncio.run(_watched())
    baseline = f"each is asked every half to whole minute, for {LIMITS.answer_seconds:g} s"
    yield Figure("1,000 dead Ray heads asked in the background, processor", percent, "% of a core", 5, "less", baseline)
    asked = f"asked every {EVERY_SECONDS:g} s"
    yield Figure("oldest answer of a living head beside them", oldest, "s", 2 * EVERY_SECONDS, "less", asked)
    by_proxy = asyncio.run(_oldest_by_proxy())
    name = "oldest answer of a living head beside them, through the API server"
    yield Figure(
        name, by_proxy, "s", 2 * EVERY_SECONDS, "less", f"{asked}; the dead ones are in {DEAD_NAMESPACES} namespaces"
    )
    alone = f"without them {late_alone * 1000:.1f} ms"
    yield Figure("event loop late beside them, p99", late * 1000, "ms", baseline=alone)


async def _watched() -> tuple[float, float, float, float]:
    """Processor time in per cent, age in seconds of the oldest answer seen, p99 of late ticks beside them and alone."""
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    poller = HeadPoller(SystemClock())
    living = _question(server.sockets[0].getsockname()[1], "a")
    _, late_alone = await _ticks(poller, living, ALONE_SECONDS)
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as silent:  # the kernel takes connections, nobody reads
        for number in range(DEAD):
            owner = OwnerKey("RayJob", ObjectKey("ns", f"dead-{number}"))
            poller.follow(owner, [_question(silent.getsockname()[1], f"job-{number}")])
        poller.follow(LIVE, [living])
        polls = asyncio.create_task(poller.run())
        await asyncio.sleep(SETTLE_SECONDS)
        before = cpu_seconds(os.getpid())
        oldest, late = await _ticks(poller, living, WATCHED_SECONDS)
        percent = (cpu_seconds(os.getpid()) - before) / WATCHED_SECONDS * 100
        polls.cancel()
        await asyncio.gather(polls, return_exceptions=True)
    server.close()
    return percent, oldest, late, late_alone


async def _oldest_by_proxy() -> float:
    """The same with `--use-kubernetes-proxy`: age in seconds of the oldest answer seen."""
    server, clock = await asyncio.start_server(_relay, "127.0.0.1", 0), SystemClock()
    poller = HeadPoller(clock, is_proxied=True)
    async with connected(anonymous(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")) as kube:
        heads = Heads.by(kube, clock, is_proxied=True)
        living = _proxied_question(heads, LIVE.key)
        poller.follow(LIVE, [living])
        polls = asyncio.create_task(poller.run())
        await until(lambda: poller.reading(LIVE, living).has_answer)
        for number in range(DEAD):
            place = ObjectKey(f"dead-{number % DEAD_NAMESPACES}", f"head-{number}")
            poller.follow(OwnerKey("RayJob", place), [_proxied_question(heads, place)])
        oldest, _ = await _ticks(poller, living, WATCHED_SECONDS)
        polls.cancel()
        await asyncio.gather(polls, return_exceptions=True)
    server.close()
    return oldest


def _proxied_question(heads: Heads, place: ObjectKey) -> Question[JobInfo | None]:
    address = HeadAddress("unused", 1, Backend("services", place, "dashboard"))
    return job_question(heads.of(a_cluster().build(), address), "a", every_seconds=EVERY_SECONDS)


async def _ticks(poller: HeadPoller, living: Question[JobInfo | None], seconds: float) -> tuple[float, float]:
    """Age of the oldest answer seen, and p99 of how late the event loop came back."""
    clock, lates, oldest = SystemClock(), [], 0.0
    for _ in range(int(seconds / TICK_SECONDS)):
        started = clock.steady()
        await asyncio.sleep(TICK_SECONDS)
        lates.append(clock.steady() - started - TICK_SECONDS)
        oldest = max(oldest, poller.reading(LIVE, living).age_seconds(clock.now()) or 0.0)
    return oldest, sorted(lates)[int(len(lates) * 0.99)]


def _question(port: int, submission_id: str) -> Question[JobInfo | None]:
    head = Dashboard(f"127.0.0.1:{port}", limits=LIMITS)
    return job_question(head, submission_id, every_seconds=EVERY_SECONDS)


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """An API server that passes requests on to heads; those in some namespaces never answer."""
    with contextlib.suppress(asyncio.IncompleteReadError):
        while b"/namespaces/dead-" not in await reader.readuntil(b"\r\n\r\n"):
            writer.write(ANSWER)
            await writer.drain()
        await reader.read()  # until whoever asked goes
    writer.close()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(ANSWER)
    await writer.drain()
    writer.close()
