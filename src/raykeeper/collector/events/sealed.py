"""Sealed segments on disk, each at the path of its key, until the bucket has them."""

from __future__ import annotations

from pathlib import Path

from raykeeper.collector.events.budget import DiskBudget
from raykeeper.collector.events.durable import is_own_file, make_folder, read_file, write_file
from raykeeper.collector.events.sealing import Segment
from raykeeper.layout.keys import SealedKey, parse_sealed_key
from raykeeper.logs import Log
from raykeeper.settings.values import MIB

log = Log("raykeeper.collector.uploads")

MAX_SEALED_BYTES = 64 * MIB
"""Of one sealed file, which is read as a whole; ours are a fifth of this. A longer one is not ours."""
_SCRATCH = ".tmp"


class SealedFiles:
    """What waits to be uploaded. Writing and reading block; `waiting` is changed by the event loop alone."""

    def __init__(self, folder: Path, budget: DiskBudget, prefix: str) -> None:
        """`prefix` begins every key that may be written: those of the own cluster."""
        self._prefix = prefix
        self.failed: dict[str, int] = {}
        """What could not be read or was refused for good: size by key. It stays on disk, and counts as unsent."""
        self.waiting: dict[str, int] = {}
        """Size by key, in the order in which it was sealed."""
        self._folder = folder
        self._budget = budget

    def take_over(self) -> None:
        """Find what earlier lives left, oldest first. Blocks; for the start."""
        make_folder(self._folder)
        for scratch in self._folder.glob(f"*{_SCRATCH}"):
            if is_own_file(scratch, MAX_SEALED_BYTES):
                scratch.unlink()
        left = [path for path in self._folder.rglob("*") if is_own_file(path, MAX_SEALED_BYTES)]
        keys = [facts for path in left if (facts := parse_sealed_key(path.relative_to(self._folder).as_posix()))]
        own = [facts for facts in keys if facts.key.startswith(self._prefix)]
        if len(own) < len(left):
            log.warning("files in the spool are not of this cluster, and are left there", files=len(left) - len(own))
        for facts in sorted(own, key=_age):
            self.add(facts.key, self._path(facts.key).lstat().st_size)
        self._prune()

    @property
    def oldest_ns(self) -> int:
        """When the oldest that waits was sealed; 0 where none waits."""
        facts = parse_sealed_key(next(iter(self.waiting), ""))
        return facts.sealed_ns if facts else 0

    def bytes_of(self, session: str, node_id: str) -> int:
        """What waits of one node."""
        missing = self.waiting | self.failed
        return sum(size for key, size in missing.items() if _belongs(key, session, node_id))

    def write(self, segment: Segment) -> None:
        """Make a segment durable. On OSError it is not there."""
        path = self._path(segment.key)
        write_file(path, segment.data, self._folder / f"{path.name}{_SCRATCH}")

    def read(self, key: str) -> bytes:
        return read_file(self._path(key), MAX_SEALED_BYTES)

    def delete(self, key: str) -> None:
        self._path(key).unlink(missing_ok=True)

    def add(self, key: str, size: int) -> None:
        """Count a segment that is on disk; one that was sealed again after a crash is counted once."""
        self._budget.add(size - self.waiting.get(key, 0))
        self.waiting[key] = size

    def forget(self, key: str) -> None:
        self._budget.give_back(self.waiting.pop(key))

    def set_aside(self, key: str) -> None:
        """Wait for it no longer. It is still missing, and its room is still taken."""
        self.failed[key] = self.waiting.pop(key)

    def take_up_failed(self) -> None:
        """Have what failed tried once more."""
        self.waiting |= self.failed
        self.failed.clear()

    def _path(self, key: str) -> Path:
        return self._folder / key

    def _prune(self) -> None:
        """Remove the empty folders of hours past."""
        for folder in sorted(
            (path for path in self._folder.rglob("*") if path.is_dir() and not path.is_symlink()), reverse=True
        ):
            if not any(folder.iterdir()):
                folder.rmdir()


def _belongs(key: str, session: str, node_id: str) -> bool:
    facts = parse_sealed_key(key)
    return facts is not None and (facts.session.session, facts.node_id) == (session, node_id)


def _age(facts: SealedKey) -> tuple[int, int]:
    return facts.sealed_ns, facts.sequence
