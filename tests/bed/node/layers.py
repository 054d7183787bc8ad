"""Image layers: a folder as an uncompressed tar that depends on nothing but its content."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bed.node.commands import run

PACK_TIMEOUT_SECONDS = 600
FIXED_TIME = 1_700_000_000
"""Modification time of every packed file: the same content gives the same layer."""


def pack(
    folder: Path,
    target: Path,
    *,
    members: Sequence[str] = (".",),
    owner: tuple[int, int] | None = None,
    left_out: Sequence[str] = (),
) -> None:
    """Write `members` of `folder` as a reproducible tar; owners as on disk, or all `owner` (user, group).

    Guarantees: a tar that is there is whole.
    """
    owners = [] if owner is None else [f"--owner={owner[0]}", f"--group={owner[1]}"]
    unfinished = target.with_suffix(".unfinished")
    run(
        [
            "tar",
            "--create",
            f"--file={unfinished}",
            f"--directory={folder}",
            "--sort=name",
            f"--mtime=@{FIXED_TIME}",
            "--numeric-owner",
            "--format=posix",
            "--pax-option=delete=atime,delete=ctime",
            *owners,
            *(f"--exclude={pattern}" for pattern in left_out),
            *members,
        ],
        timeout_seconds=PACK_TIMEOUT_SECONDS,
    )
    unfinished.rename(target)
