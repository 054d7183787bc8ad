"""Programs of the machine, run to their end: output as text, failure as one sentence with the cause."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from bed.errors import BedError

SHOWN_LINES = 15  # the cause stands at the end; a whole apt or debootstrap log would hide it
DEFAULT_TIMEOUT_SECONDS = 120


class CommandFailed(BedError):
    """A program ended with an error or took too long."""

    def __init__(self, command: Sequence[str], cause: str) -> None:
        super().__init__(f"`{' '.join(command)}` failed: {cause}")


def search_path() -> str:
    """PATH and the folders of the system's programs, which an ordinary shell's PATH may lack."""
    return f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"


def find_program(name: str) -> str | None:
    """Where the program is, if it is there."""
    return shutil.which(name, path=search_path())


def run(
    command: Sequence[str],
    *,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
) -> str:
    """The standard output of `command`; raises CommandFailed with its last lines otherwise. `env` adds variables."""
    full_env = os.environ | {"PATH": search_path()} | dict(env or {})
    try:
        done = subprocess.run(
            command, input=stdin, env=full_env, capture_output=True, text=True, timeout=timeout_seconds, check=False
        )
    except FileNotFoundError as exc:
        raise CommandFailed(command, "there is no such program") from exc
    except subprocess.TimeoutExpired as exc:
        raise CommandFailed(command, f"it took more than {timeout_seconds:.0f} s") from exc
    if done.returncode != 0:
        raise CommandFailed(command, _last_lines(done.stdout + done.stderr) or f"exit code {done.returncode}")
    return done.stdout


def succeeds(command: Sequence[str], *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> bool:
    """Whether `command` ends well: for questions such as "is this there?"."""
    try:
        run(command, timeout_seconds=timeout_seconds)
    except CommandFailed:
        return False
    return True


def _last_lines(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-SHOWN_LINES:])
