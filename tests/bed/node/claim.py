"""The machine's one real node belongs to one folder at a time; this says to which."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bed.errors import BedError
from bed.locks import file_lock
from bed.node.cgroup import node_processes
from bed.node.settings import MACHINE_FOLDER
from bed.processes import ProcessId, processes_of

CLAIM_FILE = MACHINE_FOLDER / "claim.json"
LOCK_FILE = MACHINE_FOLDER.with_suffix(".lock")


class NodeIsTaken(BedError):
    """Another bed has the machine's real node."""

    def __init__(self, claim: Claim) -> None:
        super().__init__(
            f"there is one real node per machine, and the bed in {claim.folder} has it (claimed by process "
            f"{claim.claimant.pid}): end that test run, or run `bed down` there"
        )


@dataclass(frozen=True)
class Claim:
    """Who has the node."""

    folder: str
    claimant: ProcessId
    """The process that took it; `bed up` ends while its node and control plane live on."""

    @property
    def is_live(self) -> bool:
        """Whether anything stands behind it: its folder, and a process that took it or that it is there for."""
        folder = Path(self.folder)
        if not folder.exists():
            return False
        return self.claimant.alive or bool(node_processes()) or bool(processes_of(folder.parent))


def current_claim() -> Claim | None:
    """The claim that is written down, live or not."""
    try:
        return msgspec.json.decode(CLAIM_FILE.read_bytes(), type=Claim)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def is_anothers(folder: Path) -> bool:
    """Whether a live claim stands for a folder other than this one."""
    claim = current_claim()
    return claim is not None and claim.folder != str(folder) and claim.is_live


def take_claim(folder: Path) -> bool:
    """Claim the node for `folder`. True when something that is dead by now had it before, so that remains may be there.

    Raises NodeIsTaken while another folder's claim is live.
    """
    me = ProcessId.of(os.getpid())
    if me is None:
        raise BedError("this process is not in /proc")
    with file_lock(LOCK_FILE):
        before = current_claim()
        if before is not None and is_anothers(folder):
            raise NodeIsTaken(before)
        folder.mkdir(parents=True, exist_ok=True)
        MACHINE_FOLDER.mkdir(exist_ok=True)
        CLAIM_FILE.write_bytes(msgspec.json.encode(Claim(str(folder), me)))
    return before is not None and before.folder != str(folder)


def drop_claim() -> None:
    """Give the node up; nothing happens when nobody has it."""
    CLAIM_FILE.unlink(missing_ok=True)
