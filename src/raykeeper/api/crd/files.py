"""The CRDs as files, which are read whole: printing them must not cost the time of making them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from raykeeper.errors import Misconfigured

CRD_FOLDER: Final = (Path(__file__).parent.parent / "crds").resolve()
"""One file per CRD. In a checkout a link to that of the Helm chart, in the wheel the files themselves."""


def crd_files() -> dict[str, Path]:
    """The files by the plural of their kind, such as `rayclusters`."""
    return {path.stem.partition("_")[2]: path for path in sorted(CRD_FOLDER.glob("*.yaml"))}


def find_crd_files(names: list[str]) -> list[Path]:
    """The files of the kinds called by plural, singular or full name in any case; all when none is called."""
    files = crd_files()
    if not files:
        raise Misconfigured("CRDs", str(CRD_FOLDER), "there are none: this installation is not whole")
    return [files[_plural(name, files)] for name in names] or list(files.values())


def _plural(name: str, files: dict[str, Path]) -> str:
    word = name.lower().partition(".")[0]
    for plural in files:
        if word in (plural, plural.removesuffix("s")):
            return plural
    raise Misconfigured("NAMES", name, f"the kinds are {', '.join(files)}")
