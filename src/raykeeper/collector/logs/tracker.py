"""Which log files there are and what is new in them: listings matched with what is known, by inode.

Everything here runs in one thread, the reader's. It decides identity: a renamed file goes on, a truncated or replaced
one begins a new generation, a deleted one is read to its end through the descriptor that was kept, or given up.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from raykeeper.clock import Clock
from raykeeper.collector.logs.attribution import node_of_file
from raykeeper.collector.logs.descriptors import AnotherFile, OpenFiles
from raykeeper.collector.logs.kinds import is_rewritten
from raykeeper.collector.logs.listing import LogListing
from raykeeper.collector.logs.looks import Look, Scope
from raykeeper.collector.logs.losses import Losses
from raykeeper.collector.logs.positions import Positions
from raykeeper.collector.logs.settings import LogShipperSettings
from raykeeper.collector.logs.times import unix_ns
from raykeeper.collector.logs.tracked import TrackedFile
from raykeeper.collector.rayfolder import LogTree
from raykeeper.collector.sessions import SessionOnDisk
from raykeeper.layout.logs import generation_name
from raykeeper.layout.packs import FILE_LIMIT_BYTES
from raykeeper.logs import Log
from raykeeper.times import NS

RETRY_SECONDS = 30.0
SOON_SECONDS = 1.0
HOT_SECONDS = 60.0
"""A file that was written this lately is kept open, so that it can be read after it was rotated away."""
MAX_FOLLOWED = 50_000
"""Names below all `logs/` together: each takes 2 KB of memory, and a long one counts as several. Sessions of the past
may have half of it, so that the current one has room; what is known stays. Further ones are left out, and told."""
MAX_FILE_BYTES = FILE_LIMIT_BYTES
"""Of one file, which no disk has, and a sparse one says all the same: what lies behind is not looked at. A reader
believes no more, and whatever else is in a pack that says so would be lost with it."""
WHOLE_AFTER_REWRITES = 3
WHOLE_BYTES_MAX = 4 << 20

log = Log("raykeeper.collector.logs")


class Sessions(Protocol):
    """What of the session watch is used."""

    def sessions(self) -> tuple[SessionOnDisk, ...]: ...

    def current_session(self) -> str | None: ...


class LogTracker:
    """The log files of all sessions, and which of them have something to send."""

    def __init__(self, settings: LogShipperSettings, sessions: Sessions, clock: Clock, losses: Losses) -> None:
        self._settings = settings
        self._sessions = sessions
        self._clock = clock
        self._losses = losses
        self._listings: dict[str, LogListing] = {}
        self._folders: dict[str, Path] = {}
        self._trees: dict[str, LogTree] = {}
        self._files: dict[str, dict[int, TrackedFile]] = {}
        self._last_generation_ns = 0
        self._looks = 0
        self.positions = Positions(settings.positions_file)
        self.open_files = OpenFiles(settings.descriptors_max, self._open_by_path)
        self.news: dict[TrackedFile, None] = {}
        """Files with something to send, in the order it was noticed."""
        self._is_loaded = False

    def __len__(self) -> int:
        return sum(map(len, self._files.values()))

    def scan(self, scope: Scope) -> None:
        """Look for new, changed, renamed and deleted files."""
        with self.one_pass():
            self._scan(scope)

    def _scan(self, scope: Scope) -> None:
        self._load()
        self._looks += 1
        look = Look(scope, self._looks, unix_ns(self._clock), self._settings.user_tick_seconds)
        on_disk = {session.name: session for session in self._sessions.sessions()}
        for name in self._listings.keys() - on_disk.keys():
            self._forget_session(name)
        for session in on_disk.values():
            is_past = session.name != self._sessions.current_session()
            if scope is not Scope.USER or not is_past:
                self._scan_safely(session, look, is_past=is_past)
        for file in [file for file in self.news if file.node_id is None]:
            self._attribute(file, on_disk.get(file.session))
        self._give_up_deleted()
        self._close_cold()

    @contextmanager
    def one_pass(self) -> Iterator[None]:
        """Folders stay open inside the block, so that each is looked for once, and not longer: names change."""
        try:
            yield
        finally:
            for tree in self._trees.values():
                tree.close()
            self._trees.clear()

    def _tree(self, session: str) -> LogTree:
        if session not in self._trees:
            if session not in self._folders:
                raise FileNotFoundError(session)
            self._trees[session] = LogTree(self._folders[session])
        return self._trees[session]

    def _open_by_path(self, file: TrackedFile) -> int:
        return self._tree(file.session).open_file(file.path)

    def settle_nodes(self) -> None:
        """File what still waits for its node: there is no time left to learn more."""
        for file in self.news:
            if file.node_id is None:
                file.node_id = self._newest_node(file.session) or self._settings.unknown_node

    def note(self, file: TrackedFile) -> None:
        """Take the file up among those with news, or drop it, as its facts are now."""
        if not file.has_news:
            self.news.pop(file, None)
            file.unsent_since = None
            if file.is_deleted:
                self._finish(file)
            return
        self.news.setdefault(file)
        if file.unsent_since is None:
            file.unsent_since = self._clock.steady()

    def postpone(self, file: TrackedFile, seconds: float = SOON_SECONDS) -> None:
        """Leave a file alone for a moment."""
        file.not_before = self._clock.steady() + seconds

    def failed(self, file: TrackedFile, exc: OSError) -> None:
        """A file could not be read: say so once, try again later."""
        if isinstance(exc, AnotherFile | FileNotFoundError):  # renamed or gone since it was listed
            self._distrust(file.session)
            self.postpone(file)
            if file.is_deleted:
                self._give_up(file, "deleted before it was read")
            return
        self.postpone(file, RETRY_SECONDS)
        self._losses.unreadable(file.name, exc)

    def replaced(self, file: TrackedFile) -> None:
        """The content is another than what was sent: end this generation and begin the next."""
        try:
            with self.open_files.reading(file) as descriptor:
                status = os.fstat(descriptor)
        except OSError:
            self._gone(file)
            return
        if not file.is_whole:
            self._losses.lost(file, "replaced before it was read")
        successor = self._new_file(file.session, file.inode, file.path)
        # What a file of that inode and name was before tells nothing about one that was renamed to it.
        is_rewrite = file.name == file.told_name and _looks_rewritten(file.size, _size(status))
        successor.rewrites = file.rewrites + 1 if is_rewrite else 0
        successor.is_whole |= successor.rewrites >= WHOLE_AFTER_REWRITES
        successor.size, successor.mtime_ns = _size(status), status.st_mtime_ns
        successor.is_deleted = file.is_deleted
        if not file.is_deleted:
            self._files[file.session][file.inode] = successor
        self.open_files.hand_over(file, successor)
        self._finish(file)
        self.note(successor)

    def close(self) -> None:
        self.open_files.close_all()
        self.positions.close()

    def _load(self) -> None:
        if not self._is_loaded:
            self._is_loaded = True
            for file in self.positions.load(self._clock.steady()):
                self._files.setdefault(file.session, {})[file.inode] = file

    # --- one session ---

    def _scan_safely(self, session: SessionOnDisk, look: Look, *, is_past: bool) -> None:
        """Look at one session; its trouble is not the others'."""
        try:
            self._scan_session(session, look, is_past=is_past)
        except Exception:
            log.exception("looking at the logs of a session failed", session=session.name)

    def _scan_session(self, session: SessionOnDisk, look: Look, *, is_past: bool) -> None:
        is_first = session.name not in self._listings
        if is_first:
            self._listings[session.name] = LogListing(self._losses.unreadable)
            self._folders[session.name] = session.path
        listing = self._listings[session.name]
        files = self._files.setdefault(session.name, {})
        room = self._room(listing, is_past=is_past)
        if listing.refresh(self._tree(session.name), look.now_ns, room):
            self._losses.left_out(session.name, listing.left_out)
            self._match(session.name, listing.paths, is_first)
        for file in look.due(files.values(), is_past=is_past):
            self._look_at(file)

    def _room(self, listing: LogListing, *, is_past: bool) -> int:
        """How many names a listing may have."""
        known = sum(other.names for other in self._listings.values())
        return listing.names + max(0, (MAX_FOLLOWED // 2 if is_past else MAX_FOLLOWED) - known)

    def _match(self, session: str, paths: dict[int, str], is_first: bool) -> None:
        files = self._files[session]
        for inode, path in paths.items():
            file = files.get(inode)
            if file is None:
                files[inode] = file = self._new_file(session, inode, path)
                file.was_here_before = is_first
                self._look_at(file)
                self.note(file)
            elif file.path != path:
                self._renamed(file, path)
            file.misses = 0
        for inode in files.keys() - paths.keys():
            self._missed(files[inode])

    def _renamed(self, file: TrackedFile, path: str) -> None:
        file.rename(path)
        if self.open_files.kept(file) is None and not self._is_same(file):
            self.replaced(file)
        else:
            self.note(file)

    def _missed(self, file: TrackedFile) -> None:
        """A listing beside a rename may show neither name, so a file is gone only if it is missed twice."""
        file.misses += 1
        kept = self.open_files.kept(file)
        if file.misses > 1 or (kept is not None and os.fstat(kept).st_nlink == 0):
            self._gone(file)
        else:
            self._distrust(file.session)

    def _gone(self, file: TrackedFile) -> None:
        self._files.get(file.session, {}).pop(file.inode, None)
        file.is_deleted = True
        kept = self.open_files.kept(file)
        if kept is None:
            self._give_up(file, "deleted before it was read")
            return
        file.size = _size(os.fstat(kept))
        self.note(file)

    def _look_at(self, file: TrackedFile) -> None:
        """See whether the file changed."""
        try:
            status = self._tree(file.session).status(file.path)
        except OSError:
            self._distrust(file.session)
            return
        if status.st_ino != file.inode:
            self._distrust(file.session)
        elif status.st_mtime_ns != file.mtime_ns or _size(status) != file.size:
            self._changed(file, status)

    def _changed(self, file: TrackedFile, status: os.stat_result) -> None:
        """Take up what is new in a file, or begin anew with it."""
        if self._is_another(file, _size(status)):
            self.replaced(file)
            return
        file.size, file.mtime_ns = _size(status), status.st_mtime_ns
        self.note(file)
        if file.has_news and not file.is_whole:
            self._keep_open(file)

    def _is_another(self, file: TrackedFile, size: int) -> bool:
        """Whether a file that changed has other content than what was sent, or another node's."""
        if file.is_whole:
            return file.node_id not in (None, self._newest_node(file.session), self._settings.unknown_node)
        return size < file.sent or (size == file.sent and not self._is_same(file))

    def _is_same(self, file: TrackedFile) -> bool:
        if file.is_whole or file.sent == 0:
            return True
        try:
            with self.open_files.reading(file) as descriptor:
                return file.signature.matches(descriptor, file.sent)
        except OSError:
            return True  # what cannot be opened is not read either; the next look decides

    def _keep_open(self, file: TrackedFile) -> None:
        try:
            self.open_files.keep(file)
        except OSError as exc:
            self.failed(file, exc)

    # --- ends ---

    def _give_up(self, file: TrackedFile, reason: str) -> None:
        if file.unsent and not file.is_whole:
            self._losses.lost(file, reason)
        self._finish(file)

    def _finish(self, file: TrackedFile) -> None:
        """Nothing more will come of this generation."""
        self.news.pop(file, None)
        file.unsent_since = None
        file.is_finished = True
        if file.is_deleted:
            self._losses.deleted(file)
        self.open_files.close(file)
        self.positions.remember([file], is_gone=True, is_urgent=False)

    def _give_up_deleted(self) -> None:
        """Keep deleted files open only up to the limit; the one whose bytes wait longest goes first."""
        deleted = [file for file in self.open_files if file.is_deleted]
        excess = sum(file.size for file in deleted) - self._settings.deleted_bytes_max
        for file in sorted(deleted, key=lambda file: file.unsent_since or 0.0):
            if excess <= 0:
                return
            excess -= file.size
            self._give_up(file, "deleted, and the limit of deleted files kept open was reached")

    def _close_cold(self) -> None:
        """Close what was not written lately, or all that is up to date where room is needed."""
        cold_since = unix_ns(self._clock) - (0 if self.open_files.is_crowded else int(HOT_SECONDS * NS))
        for file in self.open_files:
            if file.mtime_ns < cold_since and not file.has_news:
                self.open_files.close(file)

    def _forget_session(self, name: str) -> None:
        """A session directory was removed."""
        for file in tuple(self._files.get(name, {}).values()):
            self._gone(file)
        self._files.pop(name, None)
        del self._listings[name], self._folders[name]
        self._losses.forget(name)

    # --- new files ---

    def _new_file(self, session: str, inode: int, path: str) -> TrackedFile:
        self._last_generation_ns = max(unix_ns(self._clock), self._last_generation_ns + 1)
        generation = generation_name(self._last_generation_ns, inode)
        return TrackedFile(session, inode, path, generation, self._clock.steady(), is_rewritten(path))

    def _attribute(self, file: TrackedFile, session: SessionOnDisk | None) -> None:
        nodes = session.incarnations if session else ()
        written_ns = file.mtime_ns if file.was_here_before else None
        file.node_id = node_of_file(file.name, nodes, last_written_ns=written_ns)
        if file.node_id is None and self._clock.steady() - file.first_seen >= self._settings.node_wait_seconds:
            file.node_id = nodes[-1].node_id if nodes else self._settings.unknown_node

    def _newest_node(self, session: str) -> str | None:
        found = next((s for s in self._sessions.sessions() if s.name == session), None)
        return found.incarnations[-1].node_id if found and found.incarnations else None

    def _distrust(self, session: str) -> None:
        if session in self._listings:
            self._listings[session].distrust()


def _size(status: os.stat_result) -> int:
    return min(status.st_size, MAX_FILE_BYTES)


def _looks_rewritten(old_size: int, new_size: int) -> bool:
    """Whether the new content is about as much as the old: written anew, rather than begun again as a log is."""
    return 0 < old_size <= WHOLE_BYTES_MAX and old_size <= 2 * new_size and new_size <= 2 * old_size
