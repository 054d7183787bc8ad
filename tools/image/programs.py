"""Where the programs stand in the container image, and which image has which."""

from __future__ import annotations

import configparser
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

PACKAGES: Final = PurePosixPath("usr/local/lib/python3.11/dist-packages")
"""Debian's Python looks there by itself, so that no variable of a pod can lead it astray."""
USER: Final = "65532:65532"
ENVIRONMENT: Final[Mapping[str, str]] = {
    "PATH": "/usr/local/bin:/usr/bin",
    "HOME": "/home/nonroot",
    "LANG": "C.UTF-8",
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt",
}
_SCRIPT: Final = """#!/usr/bin/python3
import sys

from raykeeper.cli.main import main

sys.argv[0] = "{name}"
main()
"""
_IN_KUBERAYS_IMAGES: Final[Mapping[str, str]] = {
    "manager": "manager",
    "submitter": "submitter",
    "kuberay-apiserver": "workspace/apiserver/kuberay-apiserver",
}
"""Paths at which KubeRay's charts, its operator and people's manifests start a program."""


@dataclass(frozen=True)
class Variant:
    """One image: its programs, its pins, and what it has of our own package."""

    name: str
    pins: str
    programs: frozenset[str] | None = None
    """All of the wheel's where it is None."""
    entry_point: str = "collector"
    """What runs where a container has arguments and no command: a sidecar of KubeRay's operator and of ours."""
    kept: frozenset[str] | None = None
    """Parts of our own package that are in it; all where it is None."""


ALL: Final = Variant("all", "runtime.txt")
COLLECTOR: Final = Variant(
    "collector",
    "collector.txt",
    programs=frozenset({"collector"}),
    kept=frozenset(
        {
            *(
                "__init__",
                "api",
                "backoff",
                "cli",
                "clock",
                "collector",
                "errors",
                "layout",
                "logs",
                "ray",
                "rayevents",
            ),
            *("settings", "storage", "times"),
        }
    ),
)
VARIANTS: Final[Mapping[str, Variant]] = {variant.name: variant for variant in (ALL, COLLECTOR)}


def program_names(packages: Path) -> list[str]:
    """The commands of our wheel, which is unpacked there."""
    (file,) = packages.glob("raykeeper-*.dist-info/entry_points.txt")
    points = configparser.ConfigParser()
    points.read_string(file.read_text())
    return sorted(points["console_scripts"])


def program_paths(names: Iterable[str]) -> Iterator[tuple[PurePosixPath, str]]:
    """Every path at which a program can be started, with its name."""
    for name in names:
        yield PurePosixPath("usr/local/bin", name), name
        if name in _IN_KUBERAYS_IMAGES:
            yield PurePosixPath(_IN_KUBERAYS_IMAGES[name]), name


def write_programs(root: Path, names: Iterable[str]) -> None:
    """Write a script for each path. It says which program it is, whatever the path is called."""
    for path, name in program_paths(names):
        script = root / path
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(_SCRIPT.format(name=name))
        script.chmod(0o755)
