"""Our own image for pods, as `make image` makes it, of the code as it is now."""

from __future__ import annotations

import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Final

from bed.cache import cache_folder
from tools.image.archive import write_image
from tools.image.programs import ALL, Variant
from tools.wheel import build_wheel

OWN_IMAGE: Final = f"ghcr.io/raykeeper/raykeeper:{version('raykeeper')}"
"""The default of the charts."""
SMALL_IMAGE: Final = f"ghcr.io/raykeeper/raykeeper-collector:{version('raykeeper')}"
"""With nothing but the collector."""


def own_image(name: str = OWN_IMAGE, variant: Variant = ALL) -> Path:
    """The image's archive. Made anew each time; what changes rarely is kept."""
    archive = cache_folder() / "images" / f"raykeeper-{variant.name}.tar"
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        write_image(archive, name, build_wheel(Path(folder)), variant)
    return archive
