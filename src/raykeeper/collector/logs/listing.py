"""The files below one `logs/` folder, by inode. A folder is listed again only when its time says that it changed."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from raykeeper.collector.logs.kinds import is_skipped
from raykeeper.collector.rayfolder import MAX_NAMES, Folder, LogTree

MAX_FOLDERS = 10_000
"""Below one `logs/`; what is in further ones is left out, and told."""
MAX_PATH_BYTES = 1024
"""Of a path below `logs/`; Ray's have 200. Escaped, it is up to four times as long, which is all that a pack may hold.
A file of a longer one is left out, and told."""
NAME_BYTES = 128
"""Of a path that counts as one name. A longer one counts as several: what is kept in memory grows with it."""

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
    names: int = 0
    """Of files and folders; a long one counts as several."""
    is_cut: bool = False
    """There are more names, or longer ones, than are looked at."""


class LogListing:
    """What lies below one `logs/`. Symbolic links are not followed: what they show inside is there itself."""

    def __init__(self, complain: Callable[[str, OSError], None]) -> None:
        self._complain = complain
        self._folders: dict[str, _Folder] = {}
        self.paths: dict[int, str] = {}
        """Path below `logs/`, by inode."""
        self.left_out: set[str] = set()
        """Folders with more names than are looked at, and those that are not looked at."""
        self.names = 0
        """Of files and folders that are known; a long one counts as several."""

    def refresh(self, tree: LogTree, now_ns: int, room: int) -> bool:
        """Look for changes of names, outer folders first, until `room` names are known; True if there may be any."""
        found: dict[str, _Folder] = {}
        waiting, has_changed = deque([""]), False
        left = room
        while waiting and len(found) < MAX_FOLDERS and left > 0:
            prefix = waiting.popleft()
            folder, is_new = self._folder(tree, prefix, now_ns, left)
            if folder is None:
                continue
            has_changed |= is_new
            found[prefix] = folder
            left -= folder.names
            waiting += [f"{prefix}{name}/" for name in folder.folders]
        self.names = room - left
        left_out = {prefix for prefix, folder in found.items() if folder.is_cut} | set(waiting)
        has_changed |= found.keys() != self._folders.keys() or left_out != self.left_out
        self._folders, self.left_out = found, left_out
        if has_changed:
            self.paths = self._paths()
        return has_changed

    def distrust(self) -> None:
        """List every folder again next time: a name led to another file than it should."""
        for folder in self._folders.values():
            folder.is_settled = False

    def _folder(self, tree: LogTree, prefix: str, now_ns: int, room: int) -> tuple[_Folder | None, bool]:
        known = self._folders.get(prefix)
        try:
            folder = tree.folder(prefix)
            mtime_ns = folder.mtime_ns
            if known and known.is_settled and known.mtime_ns == mtime_ns:
                return known, False
            return _listed(folder, prefix, mtime_ns, now_ns, room), True
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


def _listed(folder: Folder, prefix: str, mtime_ns: int, now_ns: int, room: int) -> _Folder:
    listing = folder.list(min(room, MAX_NAMES))
    listed = _Folder(mtime_ns, is_settled=not -_YOUNG_NS < now_ns - mtime_ns < _YOUNG_NS, is_cut=listing.is_cut)
    for entry in listing.entries:
        size = len(os.fsencode(prefix + entry.name))
        names = 1 + size // NAME_BYTES
        if size > MAX_PATH_BYTES or listed.names + names > room:
            listed.is_cut = True
        elif entry.is_file:
            listed.files[entry.name] = entry.inode
            listed.names += names
        elif entry.is_folder and not is_skipped(entry.name):
            listed.folders.append(entry.name)
            listed.names += names
    return listed
