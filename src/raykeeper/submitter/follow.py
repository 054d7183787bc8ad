"""Gives a job to Ray, once, and follows it to its end through cuts and restarts of what lies between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from raykeeper.clock import Clock
from raykeeper.errors import RaykeeperError, Unavailable
from raykeeper.ray.dashboard import Dashboard
from raykeeper.ray.job_logs import job_log
from raykeeper.ray.jobs import JobInfo, job_info, submit_job
from raykeeper.submitter.settings import SubmitterSettings

LOOK_SECONDS: Final = 2.0
"""Between two tries."""
TELL_SECONDS: Final = 20.0
"""Between two lines about the same trouble."""
PATIENCE_SECONDS: Final = 300.0
"""A head that says nothing about a job it was given, for so long, is given up; the operator has the last word."""


class JobForgotten(RaykeeperError):
    """Ray was given the job and does not know it any more: its head was started anew."""


@dataclass
class Pace:
    """How long to wait for what; tests wait less."""

    look_seconds: float = LOOK_SECONDS
    patience_seconds: float = PATIENCE_SECONDS


class Submitter:
    """One job, from its submission to its end."""

    def __init__(
        self, settings: SubmitterSettings, write: Callable[[str], None], clock: Clock, pace: Pace | None = None
    ) -> None:
        self._settings = settings
        self._dashboard = Dashboard(settings.address, settings.credentials)
        self._write = write
        self._clock = clock
        self._pace = pace or Pace()
        self._printed = 0
        """Characters of the log that were written."""

    async def run(self) -> str:
        """How the job ended, in Ray's words. Raises `HeadRefused`, `RayRefused`, `JobForgotten` and `Unavailable`."""
        await self._wait_for_ray()
        await self._submit()
        return await self._follow()

    async def _wait_for_ray(self) -> None:
        """Return once the head can take jobs; that may take as long as an image takes to be pulled."""
        told = None
        while not await self._is_healthy():
            now = self._clock.steady()
            if told is None or now >= told + TELL_SECONDS:
                told = now
                address = self._settings.address
                self._say(f"Waiting for Ray Dashboard GCS to become healthy at {address} ...")
            await asyncio.sleep(self._pace.look_seconds)

    async def _is_healthy(self) -> bool:
        try:
            return (await self._dashboard.get("/api/gcs_healthz")).is_ok
        except Unavailable:
            return False

    async def _submit(self) -> None:
        """Once: a submitter that is started again finds its job, and one that got no answer asks before it repeats."""
        job = self._settings.job
        deadline = self._deadline()
        while True:
            try:
                if await job_info(self._dashboard, job.submission_id) is not None:
                    self._say(f"Job '{job.submission_id}' was submitted before; its log follows")
                    return
                await submit_job(self._dashboard, job)
            except Unavailable as error:
                await self._bear(error, deadline)
            else:
                self._say(f"Job '{job.submission_id}' was submitted; its log follows")
                return

    async def _follow(self) -> str:
        deadline = self._deadline()
        while True:
            before, trouble = self._printed, None
            try:
                await self._print_log()
            except Unavailable as error:
                trouble = error
            if self._printed > before:
                deadline = self._deadline()
            try:
                info = await self._info()
            except Unavailable as error:
                await self._bear(error, deadline)
                continue
            if info.has_ended and (trouble is None or self._clock.steady() >= deadline):
                return info.status  # also without the rest of a log that cannot be had: its node may be gone
            if trouble is not None:
                await self._bear(trouble, deadline)
            else:
                deadline = self._deadline()  # Ray answers; it only ended the log early
                await asyncio.sleep(self._pace.look_seconds)

    async def _print_log(self) -> None:
        """Write what was not written yet: after a cut Ray begins anew."""
        job_id = self._settings.job.submission_id
        skip = self._printed
        async for piece in job_log(self._settings.address, self._settings.credentials, job_id):
            fresh = piece[skip:]
            skip = max(skip - len(piece), 0)
            if fresh:
                self._write(fresh)
                self._printed += len(fresh)

    async def _info(self) -> JobInfo:
        job_id = self._settings.job.submission_id
        info = await job_info(self._dashboard, job_id)
        if info is None:
            raise JobForgotten(f"Ray does not know job {job_id} any more: its head was started anew")
        return info

    def _deadline(self) -> float:
        return self._clock.steady() + self._pace.patience_seconds

    async def _bear(self, trouble: Unavailable, deadline: float) -> None:
        """Wait before the next try. Raises the trouble when it has lasted too long."""
        if self._clock.steady() >= deadline:
            raise trouble
        await asyncio.sleep(self._pace.look_seconds)

    def _say(self, line: str) -> None:
        self._write(f"{line}\n")
