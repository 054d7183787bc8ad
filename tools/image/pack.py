"""Packs a folder as a layer: `python pack.py FOLDER LAYER [MEMBER ...]`. Depends on nothing but the content and zlib.

Run by the image's own Python, so that two machines make the same bytes. Prints the digest of the tar inside.
"""

from __future__ import annotations

import gzip
import hashlib
import sys
import tarfile
from pathlib import Path
from typing import IO, Any, Final

TIME: Final = 1_700_000_000
"""Of every file."""


class _Digest:
    """A file that hashes what is written, and hands it on."""

    def __init__(self, target: IO[bytes]) -> None:
        self._target = target
        self.sha256 = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        return self._target.write(data)


def pack(folder: Path, layer: Path) -> str:
    """Write the layer; the digest of its tar."""
    with layer.open("wb") as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as compressed:
        digest = _Digest(compressed)  # type: ignore[arg-type]
        hashed: Any = digest
        with tarfile.open(fileobj=hashed, mode="w|", format=tarfile.GNU_FORMAT) as tar:
            for path in sorted(folder.rglob("*")):
                _add(tar, path, str(path.relative_to(folder)))
    return f"sha256:{digest.sha256.hexdigest()}"


def _add(tar: tarfile.TarFile, path: Path, name: str) -> None:
    entry = tar.gettarinfo(path, name)
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mtime = TIME
    if entry.islnk():  # two names of one file here need not be that elsewhere
        entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", path.stat().st_size
    if entry.isreg():
        with path.open("rb") as content:
            tar.addfile(entry, content)
    else:
        tar.addfile(entry)


if __name__ == "__main__":
    print(pack(Path(sys.argv[1]), Path(sys.argv[2])))
