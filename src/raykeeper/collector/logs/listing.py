"""The files below one `logs/` folder, by inode. A folder is listed again only when its time says that it changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from raykeeper.collector.logs.kinds import is_skipped

# File times move in steps of the kernel's tick, and by seconds on some network file systems: a change right after a
# listing may leave the folder's time as it is, so a young time is not trusted.
_YOUNG_NS = 2_000_000_000


@dataclass
class _Folder:
    mtime_ns: int = -1
    is_settled: bool = False
    files: dict[str, int] = field(default_factory=dict)
    """Inode by name."""
    folders: list[str] = field(default_factory=list)


class LogListing:
    """What lies below one folder. Symbolic links are not followed: what they show inside is there itself."""

    def __init__(self, root: Path, complain: Callable[[str, OSError], None]) -> None:
        self.root = str(root)
        self._complain = complain
        self._folders: dict[str, _Folder] = {}
        self.paths: dict[int, str] = {}
        """Path relative to the root, by inode."""

    def refresh(self, now_ns: int) -> bool:
        """Look for changes of names; True if there may be any."""
        found: dict[str, _Folder] = {}
        waiting, has_changed = [""], False
        while waiting:
            prefix = waiting.pop()
            folder, is_new = self._folder(prefix, now_ns)
            if folder is None:
                continue
            has_changed |= is_new
            found[prefix] = folder
            waiting += [f"{prefix}{name}/" for name in folder.folders]
        has_changed |= found.keys() != self._folders.keys()
        self._folders = found
        if has_changed:
            self.paths = self._paths()
        return has_changed

    def distrust(self) -> None:
        """List every folder again next time: a name led to another file than it should."""
        for folder in self._folders.values():
            folder.is_settled = False

    def _folder(self, prefix: str, now_ns: int) -> tuple[_Folder | None, bool]:
        known = self._folders.get(prefix)
        try:
            mtime_ns = os.stat(f"{self.root}/{prefix}").st_mtime_ns  # noqa: PTH116 - a hundred times a minute
            if known and known.is_settled and known.mtime_ns == mtime_ns:
                return known, False
            return _listed(f"{self.root}/{prefix}", mtime_ns, now_ns), True
        except FileNotFoundError:
            return None, False
        except OSError as exc:
            self._complain(prefix, exc)
            return known, False

    def _paths(self) -> dict[int, str]:
        return {
            inode: f"{prefix}{name}"
            for prefix, folder in sorted(self._folders.items())
            for name, inode in folder.files.items()
        }


def _listed(path: str, mtime_ns: int, now_ns: int) -> _Folder:
    folder = _Folder(mtime_ns, is_settled=not -_YOUNG_NS < now_ns - mtime_ns < _YOUNG_NS)
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                folder.files[entry.name] = entry.inode()
            elif entry.is_dir(follow_symlinks=False) and not is_skipped(entry.name):
                folder.folders.append(entry.name)
    return folder
