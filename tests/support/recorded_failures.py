"""The recorded failures as a history server has them: all in one store, ready to be asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from raykeeper.history.commands.subjects import opened_whole
from raykeeper.history.program import open_history
from raykeeper.history.query.history import History
from raykeeper.history.report.make import make_report
from raykeeper.history.report.model import Report
from raykeeper.history.settings import CacheSettings, HistorySettings, HistoryStoreSettings
from raykeeper.layout.keys import SessionId, parse_catalog_key
from raykeeper.storage.settings.urls import parse_store_url
from recording.archives import ARCHIVES, unpack_into

SUFFIX = ".tar.zst"
NAMES = tuple(sorted(file.name.removesuffix(SUFFIX) for file in ARCHIVES.glob(f"*{SUFFIX}")))
"""Of the archives that there are."""


@dataclass(frozen=True)
class RecordedFailures:
    """A folder store with every recorded session."""

    store: Path
    sessions: Mapping[str, SessionId]
    """By the archive's name: the first, where a head was replaced. A cluster that never came up has none."""

    @asynccontextmanager
    async def served(self) -> AsyncIterator[History]:
        """A history server's parts over that store. Tables are made in it, so that the next server finds them."""
        url, cache = self.store.as_uri(), self.store.parent / "cache"
        cache.mkdir(exist_ok=True)
        settings = HistorySettings(HistoryStoreSettings(url), cache=CacheSettings(cache))
        async with open_history(settings, parse_store_url(url, {}), cache) as history:
            yield history

    async def reports(self) -> Mapping[str, Report]:
        """The report on each session."""
        async with self.served() as history:
            return {
                name: await make_report(await opened_whole(history, session)) for name, session in self.sessions.items()
            }


def unpacked_failures(folder: Path) -> RecordedFailures:
    """All archives in one store below the folder."""
    store, sessions = folder / "store", dict[str, SessionId]()
    for name in NAMES:
        for key in map(parse_catalog_key, unpack_into(store, ARCHIVES / f"{name}{SUFFIX}")):
            if key is not None and key.part == "start":
                sessions.setdefault(name, key.session)
    return RecordedFailures(store, sessions)


@pytest.fixture(scope="session")
def recorded_failures(tmp_path_factory: pytest.TempPathFactory) -> RecordedFailures:
    return unpacked_failures(tmp_path_factory.mktemp("recorded"))


@pytest.fixture(scope="session")
def recorded_reports(recorded_failures: RecordedFailures) -> Mapping[str, Report]:
    """The report on each recorded session, by the archive's name."""
    return asyncio.run(recorded_failures.reports())
