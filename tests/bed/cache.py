"""The per-user folder that outlives a checkout: built binaries, Ray environments, and the state of running beds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

CACHE_VARIABLE = "RAYKEEPER_BED_CACHE"


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The cache folder by `RAYKEEPER_BED_CACHE`, else the XDG rules. It may not exist yet."""
    if chosen := environment.get(CACHE_VARIABLE):
        return Path(chosen).absolute()
    if xdg := environment.get("XDG_CACHE_HOME"):
        return Path(xdg).absolute() / "raykeeper-bed"
    return Path.home() / ".cache" / "raykeeper-bed"
