"""The image as an OCI archive, made without Docker: `docker load`, `ctr images import` and `crane push` take it."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bed.cache import cache_folder
from bed.locks import file_lock
from bed.node.oci import Image, Layer, write_archive
from tools.image import pack
from tools.image.debian import PINS, pins
from tools.image.programs import ALL, ENVIRONMENT, USER, Variant
from tools.image.sbom import PLACE, sbom
from tools.image.tree import (
    REQUIREMENTS,
    ImagePython,
    lay_base,
    lay_packages,
    lay_programs,
    machine_architecture,
)

LABELS: Final = {
    "org.opencontainers.image.title": "raykeeper",
    "org.opencontainers.image.description": "Ray on Kubernetes that remembers",
    "org.opencontainers.image.licenses": "Apache-2.0",
    "org.opencontainers.image.source": "https://github.com/raykeeper/raykeeper",
}
_HERE: Final = Path(__file__).parent
_RECIPES: Final = ("debian.py", "pack.py", "programs.py", "tree.py")
"""Files whose text decides what is in the parts that are kept."""


@dataclass(frozen=True)
class Part:
    """One part of the image: the folder, which others look into, and its layer."""

    folder: Path
    layer: Layer


def write_image(target: Path, name: str, wheel: Path, variant: Variant = ALL, architecture: str = "") -> None:
    """Write the archive of the image called `name`. What changes rarely is kept in the cache of the test bed."""
    architecture = architecture or machine_architecture()
    base, packages = base_part(architecture), packages_part(architecture, variant)
    with tempfile.TemporaryDirectory(dir=_cache()) as scratch:
        root = Path(scratch, "root")
        lay_programs(root, wheel, variant)
        (root / PLACE).parent.mkdir(parents=True)
        (root / PLACE).write_text(sbom([packages.folder, root], pins(architecture)))
        python = _native_python()
        python.compile(root)
        own = _packed(root, Path(scratch, "own.tar.gz"), python)
        image = Image(
            name,
            [base.layer, packages.layer, own],
            user=USER,
            entrypoint=[f"/usr/local/bin/{variant.entry_point}"],
            environment=[f"{variable}={value}" for variable, value in ENVIRONMENT.items()],
            architecture=architecture,
            labels=LABELS,
        )
        write_archive(target, [image])


def base_part(architecture: str) -> Part:
    """Debian's Python."""

    def lay(root: Path) -> None:
        lay_base(root, architecture, _cache() / "debian")
        if architecture == machine_architecture():
            ImagePython(root).compile(root)
        else:
            _native_python().compile(root)

    return _kept(f"base-{architecture}", [PINS], lay)


def packages_part(architecture: str, variant: Variant) -> Part:
    """The Python packages of one variant."""

    def lay(root: Path) -> None:
        lay_packages(root, architecture, variant)
        _native_python().compile(root)

    return _kept(f"{variant.name}-{architecture}", [PINS, REQUIREMENTS / variant.pins], lay)


def _native_python() -> ImagePython:
    return ImagePython(base_part(machine_architecture()).folder)


def _kept(name: str, inputs: Iterable[Path], lay: Callable[[Path], None]) -> Part:
    """A part out of the cache, made first when what goes in has changed."""
    files = [*inputs, *(_HERE / recipe for recipe in _RECIPES)]
    key = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
    place = _cache() / f"{name}-{key}"
    folder, layer, digest = place / "root", place / "layer.tar.gz", place / "diff_id"
    with file_lock(place.with_suffix(".lock")):
        if not digest.exists():
            shutil.rmtree(place, ignore_errors=True)
            folder.mkdir(parents=True)
            lay(folder)
            python = ImagePython(folder) if name == f"base-{machine_architecture()}" else _native_python()
            digest.write_text(_packed(folder, layer, python).diff_id)
    return Part(folder, Layer(layer, digest.read_text()))


def _packed(folder: Path, layer: Path, python: ImagePython) -> Layer:
    return Layer(layer, python.run(Path(pack.__file__), folder, layer).strip())


def _cache() -> Path:
    folder = cache_folder() / "own-image"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
