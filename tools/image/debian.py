"""The Debian packages below our programs: pinned with their hashes, fetched, and unpacked without dpkg or root."""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import shutil
import tarfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

PINS: Final = Path(__file__).parents[2] / "requirements" / "debian.txt"
SUITE: Final = "bookworm"
ARCHITECTURES: Final = ("amd64", "arm64")
PACKAGES: Final = (
    "base-files",
    "ca-certificates",
    "gcc-12-base",
    "libbz2-1.0",
    "libc6",
    "libcrypt1",
    "libexpat1",
    "libffi8",
    "libgcc-s1",
    "liblzma5",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libsqlite3-0",
    "libssl3",
    "libstdc++6",
    "libuuid1",
    "media-types",
    "netbase",
    "python3.11-minimal",
    "zlib1g",
)
"""Python and the libraries that it and our packages load. There is no shell and no package manager among them."""
MIRROR: Final = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org")
SNAPSHOTS: Final = "http://snapshot.debian.org/archive"
"""Has what a mirror has dropped for something newer."""
_TIMEOUT_SECONDS: Final = 60
_LARGEST_PACKAGE: Final = 64 * 1024 * 1024

_MERGED: Final = ("bin", "lib", "lib64", "sbin")
"""Folders at the root that are links into /usr."""
_NOT_NEEDED: Final = (
    "etc/kernel",
    "usr/share/bug",
    "usr/share/doc-base",
    "usr/share/lintian",
    "usr/share/man",
    "usr/lib/python3.11/ensurepip",
    "usr/lib/python3.11/lib2to3",
    "usr/lib/python3.11/pydoc_data",
    "var/local",
    "var/lock",
    "var/mail",
    "var/tmp",
)
_DOCS: Final = PurePosixPath("usr/share/doc")
_WITHOUT_LIBRARY: Final = ("_curses", "_curses_panel", "_dbm", "nis", "ossaudiodev", "readline")
"""Modules of Python whose libraries are not in the image: terminals and databases that no program here uses."""


@dataclass(frozen=True)
class Pin:
    """One package of one architecture, as Debian signed it."""

    name: str
    architecture: str
    version: str
    sha256: str
    path: str
    """In the archive, beginning with `debian` or `debian-security`."""

    @property
    def file_name(self) -> str:
        return PurePosixPath(self.path).name


class PackageMissing(Exception):
    """No mirror gives a package as it is pinned."""


def pins(architecture: str) -> list[Pin]:
    """What the image of this architecture is made of."""
    lines = PINS.read_text().splitlines()
    all_pins = (Pin(*line.split()) for line in lines if line and not line.startswith("#"))
    return [pin for pin in all_pins if pin.architecture == architecture]


def pinned_day() -> str:
    """The day of the pins, as YYYYMMDD."""
    return PINS.read_text().partition("as of ")[2][:10].replace("-", "")


def fetch(pin: Pin, folder: Path, mirrors: Sequence[str] = ()) -> Path:
    """The package as a file, from the folder where it is there already. Its hash is checked in either case."""
    file = folder / pin.file_name
    if file.exists() and hashlib.sha256(file.read_bytes()).hexdigest() == pin.sha256:
        return file
    folder.mkdir(parents=True, exist_ok=True)
    for url in mirrors or package_urls(pin):
        content = _download(url)
        if hashlib.sha256(content).hexdigest() == pin.sha256:
            unfinished = file.with_suffix(f".{os.getpid()}")
            unfinished.write_bytes(content)
            unfinished.rename(file)
            return file
    raise PackageMissing(
        f"no mirror has {pin.name} {pin.version} for {pin.architecture} with the pinned hash; "
        "if Debian has a newer one, run `make pins`"
    )


def package_urls(pin: Pin) -> list[str]:
    """Where to look, in this order."""
    archive, _, rest = pin.path.partition("/")
    return [f"{MIRROR}/{pin.path}", f"{SNAPSHOTS}/{archive}/{pinned_day()}T235959Z/{rest}"]


def _download(url: str) -> bytes:
    """What is there; nothing where it is not."""
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as answer:
            return bytes(answer.read(_LARGEST_PACKAGE))
    except (urllib.error.URLError, TimeoutError):
        return b""


def make_root(root: Path) -> None:
    """The links that Debian has at the root, before a package is unpacked."""
    for name in _MERGED:
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")


def unpack(package: Path, root: Path) -> None:
    """Write the files of a `.deb` below `root`, without manuals and the like; licences stay."""
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(_member(package, "data.tar.xz")))) as data:
        for entry in data:
            path = _place(entry.name)
            if path is not None:
                _write(data, entry, root / path, root)


def control_of(package: Path) -> str:
    """What Debian says about the package: name, version, what it needs."""
    content = _member(package, "control.tar.xz")
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(content))) as data:
        found = data.extractfile("./control")
        if found is None:
            raise PackageMissing(f"{package.name} has no control file")
        return found.read().decode()


def _member(package: Path, name: str) -> bytes:
    for found, content in _ar_members(package.read_bytes()):
        if found == name:
            return content
    raise PackageMissing(f"{package.name} has no {name}")


def _ar_members(archive: bytes) -> Iterator[tuple[str, bytes]]:
    """A `.deb` is an `ar` archive: a magic word, then headers of 60 bytes, each with its file."""
    place = len(b"!<arch>\n")
    while place < len(archive):
        header = archive[place : place + 60]
        size = int(header[48:58])
        yield header[:16].decode().strip().rstrip("/"), archive[place + 60 : place + 60 + size]
        place += 60 + size + size % 2


def _place(name: str) -> PurePosixPath | None:
    """Where a file of a package goes; None where it is not wanted."""
    path = PurePosixPath(name)
    if path == PurePosixPath():
        return None
    if path.is_absolute() or ".." in path.parts:
        raise PackageMissing(f"a package has a file outside of its root: {name}")
    if path.parts[0] in _MERGED:
        path = PurePosixPath("usr") / path
    if any(path.is_relative_to(folder) for folder in _NOT_NEEDED):
        return None
    if path.is_relative_to(_DOCS) and path.suffix and path.name != "copyright":
        return None
    if path.parent.name == "lib-dynload" and path.name.partition(".")[0] in _WITHOUT_LIBRARY:
        return None
    return path


def _write(data: tarfile.TarFile, entry: tarfile.TarInfo, target: Path, root: Path) -> None:
    if entry.isdir():
        target.mkdir(parents=True, exist_ok=True)
        target.chmod(entry.mode)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    if entry.issym():
        target.symlink_to(entry.linkname)
    elif entry.islnk():
        linked = _place(entry.linkname)
        if linked is not None:
            os.link(root / linked, target)
    elif (content := data.extractfile(entry)) is not None:
        with target.open("wb") as file:
            shutil.copyfileobj(content, file)
        target.chmod(entry.mode)
