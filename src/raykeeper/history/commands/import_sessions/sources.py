"""What the user wants imported: a bucket by its URL, or a folder that is a bucket, a session or a collector's spool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from raykeeper.errors import Misconfigured
from raykeeper.history.commands.import_sessions.from_disk import DiskSession, find_sessions
from raykeeper.history.store.kuberay.keys import HISTORY_PREFIX, MARKERS_PREFIX
from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.settings.urls import parse_store_url

_SETTING = "what to import"


@dataclass(frozen=True)
class DiskNames:
    """What a session on a disk does not say itself."""

    namespace: str = "local"
    cluster: str = "imported"
    node_id: str = ""
    spool: Path | None = None


def bucket_source(source: str, environment: Mapping[str, str]) -> StoreSettings | None:
    """The KubeRay bucket that is meant; None for a folder of sessions."""
    if "://" in source:
        return parse_store_url(source, environment)
    folder = Path(source).expanduser().absolute()
    if any((folder / prefix).is_dir() for prefix in (HISTORY_PREFIX, MARKERS_PREFIX)):
        return parse_store_url(f"file://{folder}", environment)
    return None


def disk_source(source: str, names: DiskNames) -> list[DiskSession]:
    """The sessions in a folder. Raises `Misconfigured` where there is none."""
    folder = Path(source).expanduser().absolute()
    sessions = find_sessions(folder, names.spool, names.namespace, names.cluster) if folder.is_dir() else []
    if not sessions:
        cure = "name a bucket (s3://…), a folder with Ray's session_… folders, one of those, or a collector's spool"
        raise Misconfigured(_SETTING, source, cure)
    return sessions
