"""From settings to a store. Nothing is asked of the store yet: it may be down while a program starts."""

from __future__ import annotations

from raykeeper.clock import SystemClock
from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.patience import Patience
from raykeeper.storage.store import ObjectStore

DEFAULT_PATIENCE = Patience()


def open_store(settings: StoreSettings, patience: Patience = DEFAULT_PATIENCE) -> ObjectStore:
    """The store that `settings` name. The import of what it needs happens here, so call it once the program listens."""
    if not settings.backend.opendal_scheme:
        from raykeeper.storage.local.localstore import LocalStore

        return LocalStore(settings)
    from raykeeper.storage.remote.buckets import bucket_maker
    from raykeeper.storage.remote.operators import make_operators
    from raykeeper.storage.remote.remotestore import RemoteStore

    maker = bucket_maker(settings, SystemClock(), patience.first_byte_seconds)
    return RemoteStore(settings, make_operators(settings, patience), patience, maker)
