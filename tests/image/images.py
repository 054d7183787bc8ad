"""Images of ours as they are made here, unpacked so that tests can look into them."""

from __future__ import annotations

import json
import stat
import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any


@dataclass(frozen=True)
class File:
    """One entry of a file system: what decides how it behaves."""

    mode: int
    content: bytes
    link: str = ""

    @property
    def is_elf(self) -> bool:
        return self.content.startswith(b"\x7fELF")

    @property
    def machine(self) -> int:
        """Of an ELF file: the number of its architecture."""
        return int.from_bytes(self.content[18:20], "little")


@dataclass(frozen=True)
class Opened:
    """An archive that was read."""

    config: dict[str, Any]
    manifest_digest: str
    compressed_bytes: int
    files: dict[str, File]
    """By path, as the layers put them over each other; folders are not among them."""
    folders: dict[str, int]
    """Their modes by path."""


def opened(archive: Path) -> Opened:
    """Everything in the archive of one image."""
    with tarfile.open(archive) as tar:

        def blob(digest: str) -> bytes:
            found = tar.extractfile(f"blobs/{digest.replace(':', '/')}")
            assert found is not None
            return found.read()

        index = json.loads(_read(tar, "index.json"))
        (entry,) = index["manifests"]
        manifest = json.loads(blob(entry["digest"]))
        files: dict[str, File] = {}
        folders: dict[str, int] = {}
        for layer in manifest["layers"]:
            _read_layer(tar, f"blobs/{layer['digest'].replace(':', '/')}", files, folders)
        size = sum(layer["size"] for layer in manifest["layers"])
        return Opened(json.loads(blob(manifest["config"]["digest"])), entry["digest"], size, files, folders)


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    found = tar.extractfile(name)
    assert found is not None
    return found.read()


def _read_layer(tar: tarfile.TarFile, name: str, files: dict[str, File], folders: dict[str, int]) -> None:
    with tarfile.open(fileobj=tar.extractfile(name), mode="r:gz") as layer:
        for entry in layer:
            assert (entry.uid, entry.gid) == (0, 0), entry.name
            if entry.isdir():
                folders[entry.name] = entry.mode
            elif entry.issym():
                files[entry.name] = File(0o777, b"", entry.linkname)
            else:
                files[entry.name] = File(entry.mode, _read(layer, entry.name))


def files_below(root: Path) -> dict[str, File]:
    """The same of a folder."""
    found: dict[str, File] = {}
    for path in root.rglob("*"):
        name = str(PurePosixPath(path.relative_to(root)))
        if path.is_symlink():
            found[name] = File(0o777, b"", str(path.readlink()))
        elif path.is_file():
            found[name] = File(stat.S_IMODE(path.stat().st_mode), path.read_bytes())
    return found
