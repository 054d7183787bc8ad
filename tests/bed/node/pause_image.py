"""The image that holds a pod's namespaces open: one small static program of our own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from bed.golang import go
from bed.node.commands import run
from bed.node.layers import pack
from bed.node.oci import Image
from bed.node.settings import PAUSE_IMAGE

SOURCE = Path(__file__).parent / "pause"
BUILD_TIMEOUT_SECONDS = 300
NOBODY = "65535:65535"


def pause_image(scratch: Path) -> Image:
    """Build the program and its layer inside `scratch`."""
    tree, layer = scratch / "pause", scratch / "pause.tar"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    run(
        [str(go()), "build", "-C", str(SOURCE), "-trimpath", "-ldflags", "-s -w", "-o", str(tree / "pause"), "."],
        env=os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false", "GOWORK": "off"},
        timeout_seconds=BUILD_TIMEOUT_SECONDS,
    )
    pack(tree, layer, owner=(0, 0))
    return Image(PAUSE_IMAGE, [layer], user=NOBODY, entrypoint=["/pause"])
