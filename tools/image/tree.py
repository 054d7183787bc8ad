"""The root file system of the image as a folder, in three parts that change ever more often.

Nothing but the standard library and `uv` is needed, so that the Dockerfile runs the same code.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.image.debian import control_of, fetch, make_root, pins, unpack
from tools.image.programs import PACKAGES, Variant, program_names, write_programs

REQUIREMENTS: Final = Path(__file__).parents[2] / "requirements"
PYTHON: Final = "3.11"
STANDARD_LIBRARY: Final = f"usr/lib/python{PYTHON}"
CERTIFICATES: Final = "etc/ssl/certs/ca-certificates.crt"
_TRIPLETS: Final = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
_LOADERS: Final = {"amd64": "ld-linux-x86-64.so.2", "arm64": "ld-linux-aarch64.so.1"}
_WHEEL_PLATFORMS: Final = {"amd64": "x86_64-manylinux_2_28", "arm64": "aarch64-manylinux_2_28"}
_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_ACCOUNTS: Final = {
    "etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n",
    "etc/group": "root:x:0:\nnonroot:x:65532:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
_OF_OTHER_PROGRAMS: Final = ("api/crds", "cli/helm-chart")
"""Files that no module needs, in folders that a variant keeps."""
_OF_INSTALLERS: Final = ("bin", ".lock")
_NOTES_OF_INSTALLERS: Final = ("INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_cache.json")
"""What an installer notes about itself and about the machine it ran on."""


def machine_architecture() -> str:
    """This machine's architecture as Debian and container images spell it."""
    return _MACHINES[platform.machine()]


def lay_base(root: Path, architecture: str, downloads: Path) -> None:
    """Debian's Python with its libraries, certificates of authorities, and an account that is not root."""
    make_root(root)
    for pin in pins(architecture):
        package = fetch(pin, downloads)
        unpack(package, root)
        # Scanners look here where there is no dpkg.
        _write(root / "var/lib/dpkg/status.d" / pin.name, control_of(package))
    (root / "usr/bin/python3").symlink_to(f"python{PYTHON}")
    for name, lines in _ACCOUNTS.items():
        _write(root / name, lines)
    authorities = sorted((root / "usr/share/ca-certificates").rglob("*.crt"))
    _write(root / CERTIFICATES, "".join(file.read_text() for file in authorities))
    (root / "home/nonroot").mkdir(parents=True)
    (root / "tmp").mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)


def lay_packages(root: Path, architecture: str, variant: Variant) -> None:
    """The Python packages that our programs need, by their pins."""
    target = root / PACKAGES
    target.mkdir(parents=True, exist_ok=True)
    where: list[str | Path] = [
        "--target",
        target,
        "--python-version",
        PYTHON,
        "--python-platform",
        _WHEEL_PLATFORMS[architecture],
    ]
    exactly = ["--require-hashes", "--no-deps", "--only-binary", ":all:", "--link-mode", "copy", "--quiet"]
    command = [uv(), "pip", "install", "--python", sys.executable, *where, *exactly]
    subprocess.run([*command, "--requirement", REQUIREMENTS / variant.pins], check=True)
    for name in _OF_INSTALLERS:
        _remove(target / name)
    for notes in target.glob("*.dist-info"):
        for name in _NOTES_OF_INSTALLERS:
            _remove(notes / name)


def lay_programs(root: Path, wheel: Path, variant: Variant) -> list[str]:
    """Our own package and a script for each program; the programs' names."""
    target = root / PACKAGES
    target.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    if variant.kept is not None:
        for part in (target / "raykeeper").iterdir():
            if part.stem not in variant.kept:
                _remove(part)
        for data in _OF_OTHER_PROGRAMS:
            _remove(target / "raykeeper" / data)
    (notes,) = target.glob("raykeeper-*.dist-info")
    _remove(notes / "RECORD")
    names = [name for name in program_names(target) if variant.programs is None or name in variant.programs]
    write_programs(root, names)
    return names


class ImagePython:
    """The Python of a base that is laid out here, run where it lies. What it makes does not depend on this machine."""

    def __init__(self, base: Path) -> None:
        libraries = base / "usr/lib" / _TRIPLETS[machine_architecture()]
        loader = libraries / _LOADERS[machine_architecture()]
        self._command: list[str | Path] = [loader, "--library-path", libraries, base / f"usr/bin/python{PYTHON}", "-S"]
        self._environment = {
            "PYTHONHOME": str(base / "usr"),
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",  # it would leave byte code with times beside what it imports
            "LANG": "C.UTF-8",
        }

    def run(self, *arguments: str | Path) -> str:
        """What it prints."""
        done = self.start(*arguments)
        if done.returncode != 0:
            raise SystemExit(f"{arguments} failed in the image: {done.stderr}")
        return done.stdout

    def start(self, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end, whatever that is."""
        command, environment = [*self._command, *arguments], {**self._environment, **variables}
        return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)

    def compile(self, root: Path) -> None:
        """Byte code beside every module below `root`. It carries a hash and no time; nobody checks it at a start."""
        folders = [path for path in (root / STANDARD_LIBRARY, root / PACKAGES) if path.is_dir()]
        hashed = ["--invalidation-mode", "unchecked-hash"]
        # One process, files in their order: what is compiled first decides how later constants are shared.
        self.run("-m", "compileall", "-q", "-f", "-j", "1", *hashed, "-s", root, "-p", "/", *folders)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def uv() -> str:
    """The command that installs Python packages."""
    places = os.pathsep.join([os.environ.get("PATH", ""), str(Path(sys.executable).parent)])
    if found := shutil.which("uv", path=places):
        return found
    raise SystemExit("uv is not installed: run `make setup`, or install it from PyPI")


def fixed_times(root: Path, seconds: int) -> None:
    """Give every file one time, so that two builds agree."""
    for path in [root, *_below(root)]:
        os.utime(path, (seconds, seconds), follow_symlinks=False)


def _below(root: Path) -> Sequence[Path]:
    return sorted(root.rglob("*"))
