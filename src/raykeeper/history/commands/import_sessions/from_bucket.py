"""Sessions of a KubeRay bucket into a store of ours.

A session's objects are those that `kuberay/` shows; only logs are packed anew, many files together. What says that the
session exists comes last, so that a session is in the list once all of it is there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from raykeeper.clock import Clock
from raykeeper.history.commands.import_sessions.writing import LogSource, Make, Piece, Say, SessionWriter, Tally
from raykeeper.history.store.kuberay.contents import KubeRayContents
from raykeeper.history.store.kuberay.keys import KubeRayPlace
from raykeeper.history.store.kuberay.objects import Adapted, AdaptedAnswer, AdaptedEvents, AdaptedLog
from raykeeper.history.store.kuberay.overlay import KubeRayOverlay
from raykeeper.history.store.kuberay.places import catalog_key, catalog_start
from raykeeper.layout.keys import (
    SessionId,
    closed_record_key,
    end_record_key,
    node_record_key,
    parse_sealed_key,
    session_record_key,
)
from raykeeper.layout.records import HEAD_LOST, ClosedRecord
from raykeeper.storage.store import ObjectStore

CLOSED_REASON = "imported from KubeRay: the last sign of life of a head whose logs were uploaded at its end"


class BucketImport:
    """One import from one bucket."""

    def __init__(
        self, source: ObjectStore, target: ObjectStore, clock: Clock, say: Say, *, is_dry_run: bool = False
    ) -> None:
        self.tally = Tally()
        self._clock = clock
        self._source = source
        self._target = target
        self._say = say
        self._is_dry_run = is_dry_run
        self._overlay = KubeRayOverlay(source, clock)

    async def run(self, only: SessionId | None = None) -> Tally:
        """Import all sessions, or one."""
        async for place in self._places(only):
            await self._import(place)
        return self.tally

    async def _places(self, only: SessionId | None) -> AsyncIterator[KubeRayPlace]:
        if only is None:
            async for place in self._overlay.places.all():
                yield place
        elif found := await self._overlay.places.find(only):
            yield found

    async def _import(self, place: KubeRayPlace) -> None:
        contents = await self._overlay.contents(place.session)
        if contents is None:
            self._say(f"{place.session}: is in our layout already")
            self.tally.sessions += 1
            return
        if contents.traces.is_running(self._clock.now()):
            self._say(f"{place.session}: still runs, left out")
            self.tally.running += 1
            return
        writer = SessionWriter(self._target, place.session, self.tally, self._say, is_dry_run=self._is_dry_run)
        await writer.begin()
        await self._copy(contents, writer)
        await self._finish(contents, writer)
        self.tally.sessions += 1
        strange = f", {contents.strange} objects are none of KubeRay's and stay" if contents.strange else ""
        self._say(f"{place.session}: done{strange}")

    async def _copy(self, contents: KubeRayContents, writer: SessionWriter) -> None:
        plain = (item for item in contents.objects.values() if isinstance(item, AdaptedEvents | AdaptedAnswer))
        await writer.add_all((item.stat.key, item.stat.size, self._maker(item)) for item in plain)
        for node_id, files in _logs_by_node(contents).items():
            await writer.add_logs(node_id, files, self._read_piece)

    async def _finish(self, contents: KubeRayContents, writer: SessionWriter) -> None:
        """The small records, the list's entry last."""
        session, traces = writer.session, contents.traces
        for node in traces.node_records():
            await writer.add_record(node_record_key(session, node.node_id), node)
        for end in traces.end_records():
            await writer.add_record(end_record_key(session, end.node_id), end)
        # The store's time of our heartbeats is that of the import, so the end is said explicitly.
        reason = CLOSED_REASON if traces.has_ended() else HEAD_LOST
        closed = ClosedRecord(closed_at=traces.ended_at(), reason=reason, cluster_uid="")
        await writer.add_record(closed_record_key(session), closed)
        await writer.add_record(session_record_key(session), traces.session_record())
        await writer.add_record(catalog_key(contents.place), catalog_start(contents.place))

    def _maker(self, item: Adapted) -> Make:
        async def make() -> bytes:
            if not isinstance(item, AdaptedEvents):
                return await item.read(self._source)
            data, damage = await item.convert(self._source)
            if damage:
                self.tally.unreadable.append(f"{item.raw.key}: {damage}")
            return data

        return make

    async def _read_piece(self, piece: Piece) -> bytes:
        return await self._source.read_range(piece.file.place, piece.offset, piece.length)


def _logs_by_node(contents: KubeRayContents) -> dict[str, list[LogSource]]:
    found: dict[str, list[LogSource]] = {}
    for item in contents.objects.values():
        if isinstance(item, AdaptedLog) and (facts := parse_sealed_key(item.stat.key)):
            source = LogSource(item.pack.path, item.pack.generation, item.raw.key, item.raw.size, item.pack.read_ns)
            found.setdefault(facts.node_id, []).append(source)
    return found
