"""The root file system under every image of the bed: Debian 12 by debootstrap, kept as one layer in the cache."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

from bed.cache import cache_folder
from bed.locks import file_lock
from bed.node.commands import run
from bed.node.layers import pack
from bed.progress import step

SUITE = "bookworm"  # its Python is 3.11, the version the Ray environment is made for
PACKAGES = (
    "ca-certificates",
    "curl",
    "iproute2",
    "less",
    "libjemalloc2",
    "netbase",
    "netcat-openbsd",
    "openssl",
    "procps",
    "python3",
    "python3-distutils",
    "python3-pip",
    "python3-venv",
    "redis-server",
    "rsync",
    "sudo",
    "wget",
)
"""What Ray's own image has and Ray, its samples or a person in a shell use; redis-server makes it a Redis image too."""
LEFT_OUT = (
    "./dev/*",
    "./proc/*",
    "./sys/*",
    "./usr/lib/python3.11/EXTERNALLY-MANAGED",  # `pip install` works in Ray's image
    "./usr/share/doc/*",
    "./usr/share/info/*",
    "./usr/share/locale/*",
    "./usr/share/man/*",
    "./var/cache/*",
    "./var/lib/apt/lists/*",
    "./var/log/*",
)
APPENDED = {
    # The user of Ray's own image: 1000 in group 100 (`users`, which Debian has).
    "etc/passwd": "ray:x:1000:100::/home/ray:/bin/bash\n",
    "etc/shadow": "ray:*:20000:0:99999:7:::\n",
    "etc/profile.d/ray.sh": "export PATH=/home/ray/anaconda3/bin:$PATH\n",
    # Pods cannot get out: a `pip` runtime environment installs from the image's own folder.
    "etc/pip.conf": "[global]\nno-index = true\nfind-links = /opt/wheels\ndisable-pip-version-check = true\n",
}
"""File -> the lines it gets, at its end when Debian has it already."""
DEBOOTSTRAP_TIMEOUT_SECONDS = 1800  # two minutes where the mirror is near


def base_layer() -> Path:
    """The layer as a tar in the cache, made first when what goes in has changed."""
    layer = cache_folder() / "images" / f"base-{_key()}.tar"
    with file_lock(layer.with_suffix(".lock")):
        if not layer.exists():
            _make(layer)
    return layer


def _key() -> str:
    """Names what goes in: another list of packages is another layer."""
    content = json.dumps([SUITE, PACKAGES, LEFT_OUT, APPENDED])
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def _make(layer: Path) -> None:
    tree = layer.with_suffix(".tree")
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    with step("making the Debian base of the images with debootstrap"):
        run(debootstrap_command(tree), timeout_seconds=DEBOOTSTRAP_TIMEOUT_SECONDS)
        for name, lines in APPENDED.items():
            with (tree / name).open("a") as file:
                file.write(lines)
        pack(tree, layer, left_out=LEFT_OUT)
        shutil.rmtree(tree)


def debootstrap_command(tree: Path) -> list[str]:
    """Debootstrap from its own default mirror, in a mount namespace: a killed one must not leave /proc in `tree`."""
    debootstrap = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, str(tree)]
    return ["unshare", "--mount", "--propagation=private", *debootstrap]
