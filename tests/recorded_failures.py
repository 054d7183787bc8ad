"""The recorded failures as a history server has them: all in one store, ready to be asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from raykeeper.history.parts import Parts
from raykeeper.history.program import built_parts
from raykeeper.history.settings import CacheSettings, HistorySettings, HistoryStoreSettings
from raykeeper.layout.keys import SessionId, parse_catalog_key
from raykeeper.storage.settings.urls import parse_store_url
from recording.archives import ARCHIVES, unpack_into

SUFFIX = ".tar.zst"
NAMES = tuple(sorted(file.name.removesuffix(SUFFIX) for file in ARCHIVES.glob(f"*{SUFFIX}")))
"""Of the archives that there are."""


@pytest.fixture(scope="session")
def recorded_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder store with every recorded session."""
    store = tmp_path_factory.mktemp("recorded") / "store"
    for name in NAMES:
        unpack_into(store, ARCHIVES / f"{name}{SUFFIX}")
    return store


@asynccontextmanager
async def recorded_parts(store: Path) -> AsyncIterator[Parts]:
    """A history server's parts over that store. Tables are made in it, so that the next server finds them."""
    url, cache = store.as_uri(), store.parent / "cache"
    cache.mkdir(exist_ok=True)
    settings = HistorySettings(HistoryStoreSettings(url), cache=CacheSettings(cache))
    async with built_parts(settings, parse_store_url(url, {}), cache) as parts:
        yield parts


def recorded_sessions(store: Path) -> Mapping[str, SessionId]:
    """The session of each failure, by the cluster it happened to."""
    keys = (parse_catalog_key(file.relative_to(store).as_posix()) for file in store.rglob("*.start.json"))
    return {key.session.cluster: key.session for key in keys if key is not None}
