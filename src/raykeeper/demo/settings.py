"""What can be said about a demo, in one frozen value that the command reads once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

RAY_VERSION = "2.60.0"
"""Installed where no Ray is found; the newest that raykeeper was tried with."""


@dataclass(frozen=True)
class DemoSettings:
    """Which Ray runs what, and where its history goes."""

    folder: Path
    """The store, which is all that is left afterwards (`--folder`)."""
    ray_python: Path | None = None
    """Python of an environment with `ray[default]` (`--ray-python`); None looks for one and installs it if need be."""
    command: tuple[str, ...] = ()
    """The user's own script, given after `--`; empty runs the job that comes with raykeeper."""
    exits: bool = False
    """End once everything was shown, instead of serving it until Ctrl-C (`--exit`)."""


def default_folder() -> Path:
    """Where desktop programs keep data that is worth keeping."""
    return _home_of("XDG_DATA_HOME", ".local/share") / "raykeeper" / "demo"


def cache_folder() -> Path:
    """What may be deleted at any time, such as a Ray that was installed for demos."""
    return _home_of("XDG_CACHE_HOME", ".cache") / "raykeeper-demo"


def _home_of(variable: str, otherwise: str) -> Path:
    said = os.environ.get(variable, "")
    return Path(said) if Path(said).is_absolute() else Path.home() / otherwise
