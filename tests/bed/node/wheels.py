"""A wheel with one module, written by hand: something to install where no index can be reached."""

from __future__ import annotations

import zipfile
from pathlib import Path

WHEEL_FACTS = "Wheel-Version: 1.0\nGenerator: bed\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def write_wheel(folder: Path, name: str, version: str, source: str) -> Path:
    """A wheel of package `name` whose only module has the text `source`."""
    folder.mkdir(parents=True, exist_ok=True)
    facts = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": source,
        f"{facts}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{facts}/WHEEL": WHEEL_FACTS,
    }
    record = "".join(f"{path},,\n" for path in [*files, f"{facts}/RECORD"])
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, content in (files | {f"{facts}/RECORD": record}).items():
            archive.writestr(zipfile.ZipInfo(path), content)  # ZipInfo's time is fixed: 1980
    return wheel
