"""Where the programs stand in the container image; the Dockerfile runs this over the file system that it makes.

Uses nothing but the standard library: there is only the wheel beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import distribution
from pathlib import Path, PurePosixPath
from typing import Final

PACKAGES: Final = PurePosixPath("/opt/raykeeper")
ENTRY_POINT: Final = "/usr/local/bin/collector"
"""What runs where a container has arguments and no command: a sidecar of KubeRay's operator and of ours."""
USER: Final = "65532:65532"
SCRIPT: Final = """#!/usr/bin/python3
from raykeeper.cli.main import main

main()
"""
_AT_THE_ROOT: Final = ("manager", "submitter")
"""Programs that KubeRay's images have there, and that its chart and its operator start by that path."""


def program_paths(names: Iterable[str]) -> Iterator[PurePosixPath]:
    """Every path at which a program can be started."""
    for name in names:
        yield PurePosixPath("/usr/local/bin", name)
        if name in _AT_THE_ROOT:
            yield PurePosixPath("/", name)


def program_names() -> list[str]:
    """The commands of the wheel."""
    return sorted(point.name for point in distribution("raykeeper").entry_points if point.group == "console_scripts")


def write_programs(root: Path, names: Iterable[str]) -> None:
    """Write a script for each program; which one it is, it sees from its own name."""
    for path in program_paths(names):
        script = root / path.relative_to("/")
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(SCRIPT)
        script.chmod(0o755)


if __name__ == "__main__":
    write_programs(Path(sys.argv[1]), program_names())
