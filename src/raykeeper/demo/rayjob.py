"""A job on a Ray that runs: handed in through its dashboard, so that Ray keeps what the script says, and followed."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raykeeper.demo.asking import LocalServer
from raykeeper.errors import Unavailable
from raykeeper.rayevents.states import ENDED_JOBS

PATIENCE_SECONDS = 60.0  # a job that uses all cores keeps the dashboard from answering for a while
_LOOK_SECONDS = 0.3


@dataclass(frozen=True)
class JobEnd:
    """How a job ended, in Ray's words."""

    submission_id: str
    status: str
    message: str
    exit_code: int | None
    """Of the script; None where it never ran or was killed."""

    @property
    def shell_code(self) -> int:
        """The exit code as a shell would give it, 1 where there is none."""
        code = self.exit_code
        if code is None:
            return 0 if self.status == "SUCCEEDED" else 1
        return code if code >= 0 else 128 - code


def entrypoint(command: Sequence[str], folder: Path) -> str:
    """The shell line that runs the command where the user stands."""
    return f"cd {shlex.quote(str(folder))} && exec {shlex.join(command)}"


def submit(dashboard: LocalServer, line: str, submission_id: str) -> None:
    """Hand it in. Raises Unavailable."""
    dashboard.post("/api/jobs/", {"entrypoint": line, "submission_id": submission_id})


def follow(dashboard: LocalServer, submission_id: str, show: Callable[[], None], check: Callable[[], None]) -> JobEnd:
    """Wait until the job ends, and let it `show` what it says meanwhile.

    `check` raises where waiting has become pointless; so does a dashboard that is silent for long.
    """
    answered_at = time.monotonic()
    while True:
        check()
        try:
            details = dashboard.get(f"/api/jobs/{submission_id}")
            answered_at = time.monotonic()
        except Unavailable:
            if time.monotonic() - answered_at > PATIENCE_SECONDS:
                raise
            details = {"status": "PENDING"}
        show()
        if details["status"] in ENDED_JOBS:
            return parse_end(submission_id, details)
        time.sleep(_LOOK_SECONDS)


def parse_end(submission_id: str, details: dict[str, Any]) -> JobEnd:
    """Ray's answer about a job that ended. Pure."""
    return JobEnd(
        submission_id, details["status"], (details.get("message") or "").strip(), details.get("driver_exit_code")
    )
