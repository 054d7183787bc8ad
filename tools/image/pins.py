"""Writes `requirements/debian.txt`: which Debian packages the image has, as Debian's own signature vouches for them."""

from __future__ import annotations

import datetime
import hashlib
import lzma
import re
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.image.debian import ARCHITECTURES, MIRROR, PACKAGES, PINS, SUITE, Pin

KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SUITES: Final = (("debian", SUITE), ("debian", f"{SUITE}-updates"), ("debian-security", f"{SUITE}-security"))
_HEAD: Final = """\
# Debian packages of the container image, as of {day}. Written by `make pins`.
# name, architecture, version, sha256, path in the archive
"""


def write_pins() -> None:
    """Ask the mirror for the newest versions. Needs `gpgv`, `dpkg` and Debian's keyring."""
    newest: dict[tuple[str, str], Pin] = {}
    for archive, suite in SUITES:
        release = _verified_release(f"{MIRROR}/{archive}/dists/{suite}")
        for architecture in ARCHITECTURES:
            for pin in _listed(archive, suite, architecture, release):
                known = newest.get((pin.name, architecture))
                if known is None or _is_newer(pin.version, known.version):
                    newest[pin.name, architecture] = pin
    missing = {(name, architecture) for name in PACKAGES for architecture in ARCHITECTURES} - newest.keys()
    if missing:
        raise SystemExit(f"Debian has none of these: {sorted(missing)}")
    lines = [
        " ".join([pin.name, pin.architecture, pin.version, pin.sha256, pin.path]) for _, pin in sorted(newest.items())
    ]
    day = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    PINS.write_text(_HEAD.format(day=day) + "\n".join(lines) + "\n")


def _verified_release(url: str) -> str:
    """The text of a suite's InRelease, whose signature is by one of Debian's keys."""
    with tempfile.TemporaryDirectory() as folder:
        signed, plain = Path(folder, "InRelease"), Path(folder, "Release")
        signed.write_bytes(_get(f"{url}/InRelease"))
        subprocess.run(["gpgv", "--quiet", "--keyring", KEYRING, "--output", plain, signed], check=True)
        return plain.read_text()


def _listed(archive: str, suite: str, architecture: str, release: str) -> Iterator[Pin]:
    """The packages that we want out of a suite's list, whose hash stands in the signed release."""
    name = f"main/binary-{architecture}/Packages.xz"
    content = _get(f"{MIRROR}/{archive}/dists/{suite}/{name}")
    digest = hashlib.sha256(content).hexdigest()
    if not re.search(rf"^ {digest} +\d+ {re.escape(name)}$", release, re.MULTILINE):
        raise SystemExit(f"{name} of {suite} is not what Debian signed; try again in some minutes")
    for paragraph in lzma.decompress(content).decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and line[0] != " ")
        if fields.get("Package") in PACKAGES:
            path = f"{archive}/{fields['Filename']}"
            yield Pin(fields["Package"], architecture, fields["Version"], fields["SHA256"], path)


def _is_newer(version: str, other: str) -> bool:
    return subprocess.run(["dpkg", "--compare-versions", version, "gt", other], check=False).returncode == 0


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=120) as answer:
        return bytes(answer.read())


if __name__ == "__main__":
    write_pins()
