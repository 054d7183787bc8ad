"""What an object store may answer instead of doing what was asked. Every text names backend, bucket and key."""

from __future__ import annotations

from raykeeper.errors import RaykeeperError, Unavailable


class ObjectMissing(RaykeeperError):
    """There is no object of that key."""

    def __init__(self, store: str, key: str) -> None:
        super().__init__(f"{store}: there is no object {key!r}")
        self.store = store
        self.key = key


class ObjectTooLarge(RaykeeperError):
    """There is an object of that key, and it is larger than whoever reads it has memory for: nothing of it was kept."""

    def __init__(self, store: str, key: str, limit_bytes: int) -> None:
        super().__init__(f"{store}: {key!r} has more than {limit_bytes} bytes")
        self.store = store
        self.key = key


class StoreRefused(RaykeeperError):
    """The user must act: credentials, rights, a bucket that is not there. Trying again changes nothing."""

    def __init__(self, store: str, key: str, cause: str, cure: str, *, is_name: bool = False) -> None:
        super().__init__(f"{store}: {key!r} was refused ({cause}): {cure}")
        self.is_name = is_name
        """The store has no room for a key like this one, and takes others."""
        self.store = store
        self.key = key
        self.cause = cause
        self.cure = cure


class BucketMissing(StoreRefused):
    """The bucket, container or mount is not there."""


class StoreUnavailable(Unavailable):
    """The world must act: no answer in time, no connection, an error of the server's own. Worth trying again later."""

    def __init__(self, store: str, key: str, cause: str) -> None:
        super().__init__(store, f"{key!r} could not be reached ({cause})")
        self.store = store
        self.key = key
