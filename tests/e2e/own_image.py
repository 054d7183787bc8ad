"""Our own image for pods: Debian's Python with our package and all it needs, as this environment has them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

import raykeeper
from bed.cache import cache_folder
from bed.node.base_image import base_layer
from bed.node.oci import Image, write_archive
from tools.image_layout import ENTRY_POINT, SCRIPT, program_names, program_paths

OWN_IMAGE = "bed.local/raykeeper:1"
PACKAGES = "usr/local/lib/python3.11/dist-packages"
NOBODY = "65534"


def own_image() -> Path:
    """The image's archive. Made anew each time, in a few seconds."""
    archive = cache_folder() / "images" / "raykeeper.tar"
    layer = archive.with_suffix(".layer")
    _write_layer(layer)
    # A collector runs as its image says: the operator gives it arguments and no command, as KubeRay does.
    image = Image(OWN_IMAGE, [base_layer(), layer], user=NOBODY, entrypoint=[ENTRY_POINT])
    write_archive(archive, [image])
    layer.unlink()
    return archive


def _write_layer(layer: Path) -> None:
    """Files keep their times: byte code that fits to them is used, and a program starts in half the time."""
    with tarfile.open(layer, "w", dereference=True) as tar:  # the CRDs are a link in a checkout
        for part in [*_installed_parts("raykeeper", set()), Path(raykeeper.__file__).parent]:
            tar.add(part, f"{PACKAGES}/{part.name}", filter=_owned_by_root)
        for path in program_paths(program_names()):
            entry = tarfile.TarInfo(str(path.relative_to("/")))
            entry.size, entry.mode = len(SCRIPT), 0o755
            tar.addfile(entry, io.BytesIO(SCRIPT.encode()))


def _owned_by_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


def _installed_parts(name: str, seen: set[str]) -> Iterator[Path]:
    """The files and folders in site-packages of a distribution and of all that it requires."""
    if name in seen:
        return
    seen.add(name)
    found = distribution(name)
    yield from _top_level(found)
    for requirement in map(Requirement, found.requires or []):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield from _installed_parts(requirement.name, seen)


def _top_level(found: Distribution) -> set[Path]:
    """Where its files are, but for commands, which lie outside of the packages."""
    names = {file.parts[0] for file in found.files or []} - {"..", "__pycache__"}
    return {Path(str(found.locate_file(name))) for name in names if not name.endswith(".pth")}
