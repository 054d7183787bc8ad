"""How large the container images are, compressed, as a registry stores them."""

from __future__ import annotations

import json
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure
from tools.image.__main__ import write_archives
from tools.image.programs import ALL, COLLECTOR, Variant
from tools.wheel import build_wheel

BARS = {ALL.name: 180.0, COLLECTOR.name: 80.0}
NAMES = {ALL.name: "image with all programs", COLLECTOR.name: "image with the collector alone"}


def run() -> Iterator[Figure]:
    """Both variants for both architectures, layer by layer."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = build_wheel(Path(folder))
        for variant in (ALL, COLLECTOR):
            yield from _sizes(Path(folder, variant.name), wheel, variant)
        yield Figure("wheel", wheel.stat().st_size / 1e6, "MB")


def _sizes(folder: Path, wheel: Path, variant: Variant) -> Iterator[Figure]:
    for architecture in ("amd64", "arm64"):
        write_archives(folder, wheel, [architecture], [variant])
        (archive,) = folder.glob(f"*-{architecture}.tar")
        layers = _layers(archive)
        parts = " + ".join(f"{size / 1e6:.1f}" for size in layers)
        name = f"{NAMES[variant.name]}, {architecture}"
        yield Figure(name, sum(layers) / 1e6, "MB", BARS[variant.name], "less", f"Debian, packages, ours: {parts}")


def _layers(archive: Path) -> list[int]:
    with tarfile.open(archive) as tar:

        def read(name: str) -> bytes:
            found = tar.extractfile(name)
            return found.read() if found else b""

        (entry,) = json.loads(read("index.json"))["manifests"]
        manifest = json.loads(read(f"blobs/{entry['digest'].replace(':', '/')}"))
    return [layer["size"] for layer in manifest["layers"]]
