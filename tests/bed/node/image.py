"""The images that pods of the bed run, as archives in the cache: Ray, Redis, busybox, pause, and small ones."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from bed.cache import cache_folder
from bed.locks import file_lock
from bed.node.base_image import base_layer
from bed.node.layers import pack
from bed.node.oci import DEFAULT_PATH, Image, write_archive
from bed.node.pause_program import pause_program
from bed.node.ray_layer import COMMANDS, make_ray_layer
from bed.node.settings import PAUSE_IMAGE, RAY_IMAGE, RAY_VERSION
from bed.progress import say, step
from bed.rayenv import ray_python, requirements_file

RECIPES = (
    *("layers.py", "oci.py", "image.py", "ray_layer.py", "wheels.py", "pause_program.py", "pause/main.go"),
    "../rayenv.py",
)
"""Files whose text decides what is in the archive."""
RAY_ENVIRONMENT = (
    f"PATH=/{COMMANDS}:{DEFAULT_PATH}",
    "HOME=/home/ray",
    "LANG=C.UTF-8",
    "LC_ALL=C.UTF-8",
    "TZ=America/Los_Angeles",  # as in Ray's own image
    "RAY_USAGE_STATS_ENABLED=0",
)
REDIS_IMAGE = "redis:7.4.0"
BUSYBOX_IMAGE = "busybox:1.28"


def standard_images() -> Path:
    """The archive with the images every node has, made first when what goes in has changed."""
    base = base_layer()
    archive = _folder() / f"ray-{RAY_VERSION}-{_key(base)}.tar"
    with file_lock(archive.with_suffix(".lock"), on_wait=lambda: say("bed: another run makes the images; waiting")):
        if not archive.exists():
            python = ray_python(RAY_VERSION)
            with step(f"making the image {RAY_IMAGE}"):
                _make(archive, base, python)
    return archive


def ray_image(version: str, *names: str) -> Path:
    """The archive of the image of another Ray, under each of these names."""
    base = base_layer()
    archive = _folder() / f"ray-{version}-alone-{_key(base, version, *names)}.tar"
    with file_lock(archive.with_suffix(".lock"), on_wait=lambda: say("bed: another run makes the image; waiting")):
        if not archive.exists():
            python, layer = ray_python(version), archive.with_suffix(".layer")
            with step(f"making the image of Ray {version}"):
                make_ray_layer(python, layer)
                write_archive(archive, [_ray(name, base, layer) for name in names])
                layer.unlink()
    return archive


def one_program_image(
    name: str,
    programs: Mapping[str, Path],
    *,
    entrypoint: Sequence[str],
    on_base: bool = False,
    user: str = "0",
    environment: Sequence[str] = (f"PATH={DEFAULT_PATH}",),
) -> Path:
    """The archive of an image with `programs` (path in the image -> file or folder here) and, if asked, Debian below.

    Made anew each time, in about a second without the base.
    """
    archive = _folder() / f"{name.replace('/', '-').replace(':', '-')}.tar"
    layer = archive.with_suffix(".layer")
    _pack_programs(programs, layer)
    layers = [base_layer(), layer] if on_base else [layer]
    write_archive(archive, [Image(name, layers, user=user, entrypoint=entrypoint, environment=environment)])
    layer.unlink()
    return archive


def _pack_programs(programs: Mapping[str, Path], layer: Path) -> None:
    """A layer with copies of `programs`, owned by root."""
    tree = layer.with_suffix(".tree")
    shutil.rmtree(tree, ignore_errors=True)
    for path, source in programs.items():
        destination = tree / path.lstrip("/")
        destination.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, destination, symlinks=True)
        else:
            shutil.copy2(source, destination)
    pack(tree, layer, owner=(0, 0))
    shutil.rmtree(tree)


def _make(archive: Path, base: Path, python: Path) -> None:
    scratch = archive.with_suffix(".scratch")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    pause_layer, ray_layer = scratch / "pause.tar", scratch / "ray.tar"
    _pack_programs({"/pause": pause_program()}, pause_layer)
    make_ray_layer(python, ray_layer)
    write_archive(archive, _images(base, pause_layer, ray_layer))
    shutil.rmtree(scratch)


def _images(base: Path, pause_layer: Path, ray_layer: Path) -> list[Image]:
    ray = _ray(RAY_IMAGE, base, ray_layer)
    pause = Image(PAUSE_IMAGE, [pause_layer], user="65535:65535", entrypoint=["/pause"])
    redis = Image(REDIS_IMAGE, [base], command=["redis-server", "--protected-mode", "no"], folder="/data")
    return [pause, ray, redis, Image(BUSYBOX_IMAGE, [base], command=["sh"])]


def _ray(name: str, base: Path, layer: Path) -> Image:
    command, home = ["/bin/bash"], "/home/ray"
    return Image(name, [base, layer], user="1000", command=command, environment=RAY_ENVIRONMENT, folder=home)


def _key(base: Path, version: str = RAY_VERSION, *names: str) -> str:
    """Names what goes in: the base, the pins of Ray's environment and the recipes here."""
    digest = hashlib.sha256(" ".join([base.name, *names]).encode())
    here = Path(__file__).parent
    for file in [requirements_file(version), *(here / name for name in RECIPES)]:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _folder() -> Path:
    folder = cache_folder() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
