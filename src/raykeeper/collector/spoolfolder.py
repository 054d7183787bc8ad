"""The collector's own folder: owned and readable only by the collector."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from raykeeper.collector.events.durable import make_folder
from raykeeper.errors import Misconfigured
from raykeeper.logs import Log

OWN_MODE = 0o700
_FLAG = "--event-data-dir"

log = Log("raykeeper.collector")


def claim_spool(folder: Path, ray_tmp_root: Path) -> None:
    """Make the folder, or take one of our own, for ourselves alone. Raises Misconfigured for anybody else's.

    Below Ray's folder user code can rename it away, whatever its mode: that is told, because it costs what was
    acknowledged and not yet sent.
    """
    try:
        make_folder(folder)
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode):
            raise Misconfigured(_FLAG, str(folder), "it is a link: name the folder itself")
        if status.st_uid != os.geteuid():
            cure = f"it belongs to user {status.st_uid} and this is user {os.geteuid()}: give the collector its own"
            raise Misconfigured(_FLAG, str(folder), cure)
        folder.chmod(OWN_MODE)
    except OSError as exc:
        raise Misconfigured(_FLAG, str(folder), f"it must be writable ({exc})") from exc
    if folder.is_relative_to(ray_tmp_root):
        cure = "mount a volume for the collector alone, and name it by --event-data-dir"
        log.warning("the spool is in Ray's folder, where user code can remove it", folder=str(folder), cure=cure)
