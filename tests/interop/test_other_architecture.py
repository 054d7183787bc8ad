"""The image for arm64 runs, on a machine that has none: QEMU, out of Debian's package, stands in for the processor."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

import pytest

from bed.cache import cache_folder
from tools.image.archive import base_part, packages_part
from tools.image.debian import Pin, fetch, unpack
from tools.image.programs import ALL, PACKAGES
from tools.image.tree import PYTHON, lay_programs, machine_architecture
from tools.wheel import build_wheel

pytestmark = pytest.mark.interop

QEMU: Final = Pin(
    "qemu-user-static",
    "amd64",
    "1:7.2+dfsg-7+deb12u18+b3",
    "c3e3ba2bd87f8c5b9a5da5ef21b5a3b82d7c63b89dd448d9ddaa4eabc5b6e402",
    "debian/pool/main/q/qemu/qemu-user-static_7.2+dfsg-7+deb12u18+b3_amd64.deb",
)
QUESTION: Final = """
import platform, ssl, duckdb, opendal, uvloop, zstandard, aiohttp, msgspec
print(platform.machine(), duckdb.sql("select 40 + 5").fetchall()[0][0], ssl.OPENSSL_VERSION.split()[0])
"""


@pytest.fixture(scope="module")
def qemu() -> Path:
    """A program that runs those of arm64."""
    if machine_architecture() != "amd64":
        pytest.skip("this machine needs no stand-in for arm64")
    folder = cache_folder() / f"qemu-{QEMU.sha256[:10]}"
    program = folder / "usr" / "bin" / "qemu-aarch64-static"
    if not program.exists():
        unpack(fetch(QEMU, cache_folder() / "own-image" / "debian"), folder)
    return program


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our own part of the image."""
    folder = tmp_path_factory.mktemp("arm64")
    lay_programs(folder / "root", build_wheel(folder), ALL)
    return folder / "root"


def output(qemu: Path, programs: Path, *words: str | Path) -> str:
    """What the image's Python prints."""
    base, packages = base_part("arm64").folder, packages_part("arm64", ALL).folder
    places = os.pathsep.join(str(root / PACKAGES) for root in (packages, programs))
    variables = {"PYTHONHOME": str(base / "usr"), "PYTHONPATH": places, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [qemu, "-L", base, base / f"usr/bin/python{PYTHON}", "-S", *words]
    return subprocess.run(command, env=variables, check=True, capture_output=True, text=True).stdout


def test_every_package_with_machine_code_loads(qemu: Path, programs: Path) -> None:
    assert output(qemu, programs, "-c", QUESTION).split() == ["aarch64", "45", "OpenSSL"]


@pytest.mark.parametrize("program", ["manager", "usr/local/bin/collector", "usr/local/bin/historyserver"])
def test_a_program_starts(program: str, qemu: Path, programs: Path) -> None:
    assert "Usage:" in output(qemu, programs, programs / program, "--help")
