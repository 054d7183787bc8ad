"""Python environments with a real Ray in them, made once per version from committed pins."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path

from bed.cache import cache_folder
from bed.errors import BedError
from bed.locks import file_lock
from bed.progress import say, step
from bed.uv import run_uv

RAY_VERSION = "2.60.0"
# Debian 12's Python, which the node's Ray image is made with: its packages come out of this environment.
PYTHON_VERSION = "3.11"
# What a version of Ray needs beyond what it says itself: Serve deploys nothing with protobuf 7 (ray-project/ray#64710).
_BOUNDS = {"2.52.0": ("protobuf<7",)}
_EXTRAS = "default,serve"
_LIBRARIES = ("default,serve,data,train,tune,rllib", "torch", "scikit-learn")
"""What programs of all of Ray's libraries need. PyPI's torch brings CUDA's: gigabytes, for recordings alone."""
_IMPATIENT, _PATIENT = b"raylet_start_wait_time_s = 30\n", b"raylet_start_wait_time_s = 300\n"
"""`ray start` gives up when its raylet is not registered after 30 s, which no setting changes. That says something
about the machine, and a node that is started twice is another node: tests would see one more than they started."""


def ray_python(version: str = RAY_VERSION, *, has_libraries: bool = False) -> Path:
    """The Python of an environment with `ray[default,serve]` of that version, or with all of Ray's libraries; made on
    first use.
    """
    pins = requirements_file(version, has_libraries=has_libraries)
    kind = "ray-libraries" if has_libraries else "ray"
    folder = cache_folder() / f"{kind}-{version}-{hashlib.sha256(pins.read_bytes() + _PATIENT).hexdigest()[:10]}"
    with file_lock(
        folder.with_name(f"{folder.name}.lock"), on_wait=lambda: say("bed: another run is installing Ray; waiting")
    ):
        if not (folder / "complete").exists():
            with step(f"installing Ray {version} for Python {PYTHON_VERSION}"):
                _install(pins, folder)
    return folder / "bin" / "python"


def requirements_file(version: str, *, has_libraries: bool = False) -> Path:
    """The committed pins for that version of Ray."""
    file = _pins_file(version, has_libraries=has_libraries)
    if not file.exists():
        raise BedError(f"there are no pins for Ray {version}: make and commit them with `bed pins {version}`")
    return file


def write_pins(version: str, *, has_libraries: bool = False) -> Path:
    """Resolve Ray's dependencies into `requirements-ray-VERSION.txt`, with hashes and for every platform."""
    file = _pins_file(version, has_libraries=has_libraries)
    extras, *beside = _LIBRARIES if has_libraries else (_EXTRAS,)
    with tempfile.TemporaryDirectory() as scratch:
        wanted = Path(scratch) / "ray.in"
        wanted.write_text("\n".join([f"ray[{extras}]=={version}", *beside, *_BOUNDS.get(version, ())]) + "\n")
        for_all = ["--universal", "--generate-hashes", "--python-version", PYTHON_VERSION]
        quiet = ["--quiet", "--no-annotate", "--no-header"]  # what uv says there holds the path of `wanted`
        run_uv(["pip", "compile", *for_all, *quiet, wanted, "-o", file], purpose=f"pinning Ray {version}")
    return file


def _pins_file(version: str, *, has_libraries: bool) -> Path:
    return Path(__file__).with_name(f"requirements-ray{'-libraries' if has_libraries else ''}-{version}.txt")


def _install(pins: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)  # what an earlier attempt left
    run_uv(["venv", "--quiet", "--python", PYTHON_VERSION, folder], purpose=f"finding Python {PYTHON_VERSION}")
    exactly = ["pip", "install", "--quiet", "--require-hashes", "--python", str(folder / "bin" / "python")]
    run_uv([*exactly, "-r", pins], purpose=f"installing {pins.name}")
    _make_patient(folder / "lib" / f"python{PYTHON_VERSION}" / "site-packages" / "ray" / "_private" / "node.py")
    (folder / "complete").touch()


def _make_patient(module: Path) -> None:
    text = module.read_bytes()
    if _IMPATIENT not in text:
        raise BedError(f"{module.name} of this Ray waits for its raylet in another way: see `_IMPATIENT`")
    module.unlink()  # the same file as in uv's cache, which stays as it is
    module.write_bytes(text.replace(_IMPATIENT, _PATIENT))
