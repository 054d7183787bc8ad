"""Ray on top of the Debian base, laid out as in Ray's own image: user ray owns /home/ray/anaconda3 and the packages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from bed.node.commands import run, succeeds
from bed.node.layers import pack
from bed.node.wheels import write_wheel

PYTHON = "/usr/bin/python3.11"
PACKAGES = Path("usr/local/lib/python3.11/dist-packages")
COMMANDS = Path("home/ray/anaconda3/bin")
WHEELS = Path("opt/wheels")
RAY_OWNER = (1000, 100)
NOT_FOR_PODS = ("pip", "pip-*", "_virtualenv.*", "__pycache__")
"""Debian's pip knows where Debian's Python installs to; byte code is compiled anew below."""
UNUSED_WEIGHT = ("ray/cpp", "ray/jars", "ray/tests")
"""What no Python pod uses: 150 MB of C++ and Java libraries and Ray's own tests."""
COMPILE_TIMEOUT_SECONDS = 600
OFFLINE_PACKAGE = "bed_greeting"
"""What a `pip` runtime environment can install in a pod, which cannot reach an index."""


def make_ray_layer(ray_python: Path, layer: Path) -> None:
    """Write the layer from the environment that `ray_python` belongs to."""
    tree = layer.with_suffix(".tree")
    shutil.rmtree(tree, ignore_errors=True)
    _lay_packages(ray_python, tree)
    _lay_commands(ray_python.parent, tree / COMMANDS)
    write_wheel(tree / WHEELS, OFFLINE_PACKAGE, "1.0", f"GREETING = 'hello from {OFFLINE_PACKAGE}'\n")
    (tree / "home/ray/.bashrc").write_text("export PATH=/home/ray/anaconda3/bin:$PATH\n")
    (tree / "home/ray/.profile").write_text(". ~/.bashrc\n")
    pack(tree, layer, members=["./home/ray", f"./{PACKAGES}", f"./{WHEELS}"], owner=RAY_OWNER)
    shutil.rmtree(tree)


def _lay_packages(ray_python: Path, tree: Path) -> None:
    """Link the installed packages into place and compile them.

    Byte code is not checked against its source: the tar's fixed times would make every file look changed, and
    `ray --version` would take 5.6 s instead of 2.6.
    """
    installed = run([str(ray_python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip()
    target = tree / PACKAGES
    shutil.copytree(
        installed, target, symlinks=True, copy_function=_link_or_copy, ignore=shutil.ignore_patterns(*NOT_FOR_PODS)
    )
    for part in UNUSED_WEIGHT:
        shutil.rmtree(target / part, ignore_errors=True)
    compile_all = [str(ray_python), "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash"]
    # Fails when any single file does not compile, and some are templates that are not meant to.
    succeeds([*compile_all, "-s", str(tree), "-p", "/", str(target)], timeout_seconds=COMPILE_TIMEOUT_SECONDS)


def _lay_commands(commands: Path, target: Path) -> None:
    """Put the environment's commands (`ray`, `serve`, ...) where Ray's own image has them."""
    target.mkdir(parents=True)
    for name, content in _own_commands(commands):
        file = target / name
        file.write_bytes(content)
        file.chmod(0o755)
    for name in ("python", "python3"):
        (target / name).symlink_to(PYTHON)
    for name in ("pip", "pip3"):
        (target / name).symlink_to("/usr/bin/pip3")


def _own_commands(commands: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of each Python script, its first line changed to the image's Python."""
    for file in sorted(commands.iterdir()):
        if file.is_symlink() or file.name.startswith(("activate", "pip", "python", "pydoc")):
            continue
        first, newline, rest = file.read_bytes().partition(b"\n")
        if first.startswith(b"#!") and b"python" in first:
            yield file.name, f"#!{PYTHON}".encode() + newline + rest


def _link_or_copy(source: str, target: str) -> None:
    """A hard link, since nothing is written to; a copy where the cache spans two file systems."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)
