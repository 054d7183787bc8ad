"""The CRDs as files: generated into the Helm chart, and from there packed into the wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from raykeeper.errors import Misconfigured

_API: Final = Path(__file__).parent.parent
_PACKED: Final = _API / "crds"
CHART_FOLDER: Final = _API.parents[2] / "helm-chart" / "kuberay-operator" / "crds"
"""Where they are in a checkout."""


def crd_folder() -> Path:
    """The folder with one file per CRD: in the wheel beside this package, in a checkout that of the chart."""
    return _PACKED if _PACKED.exists() else CHART_FOLDER


def crd_files() -> dict[str, Path]:
    """The files by the plural of their kind, such as `rayclusters`."""
    return {path.stem.partition("_")[2]: path for path in sorted(crd_folder().glob("*.yaml"))}


def find_crd_files(names: list[str]) -> list[Path]:
    """The files of the kinds called by plural, singular or full name in any case; all when none is called."""
    files = crd_files()
    return [files[_plural(name, files)] for name in names] or list(files.values())


def _plural(name: str, files: dict[str, Path]) -> str:
    word = name.lower().partition(".")[0]
    for plural in files:
        if word in (plural, plural.removesuffix("s")):
            return plural
    raise Misconfigured("NAMES", name, f"the kinds are {', '.join(files)}")
