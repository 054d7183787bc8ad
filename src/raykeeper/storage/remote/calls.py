"""One call to a remote store: attempts with a time limit and pauses between them, and our error at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.errors import BucketMissing, ObjectMissing, StoreRefused, StoreUnavailable
from raykeeper.storage.patience import Patience
from raykeeper.storage.remote.failures import Failure, Meaning, parse_failure

T = TypeVar("T")

_RIGHTS_CURE = "check the credentials, and that they may read, write, list and delete there"
_BUCKET_CURE = (
    "create it, or correct its name; only S3 buckets and Azure containers are made by us, where keys are given"
)


class ThereAlready(Exception):
    """A create-only write found an object. Never leaves this package."""


class PastTheEnd(Exception):
    """A range was not all inside its object. Never leaves this package."""


class NotOffered(StoreRefused):
    """The server does not have what was asked of it, such as a conditional write."""


class Calls:
    """Makes calls to one store."""

    def __init__(self, settings: StoreSettings, patience: Patience, errors: tuple[type[Exception], ...]) -> None:
        self._settings = settings
        self._patience = patience
        self._errors = errors

    async def call(
        self,
        key: str,
        attempt: Callable[[], Awaitable[T]],
        *,
        of_object: bool = True,
        seconds: float | None = None,
    ) -> T:
        """The answer of the first attempt that has one, each within `seconds` (None: it limits itself)."""
        for number in range(self._patience.attempts):
            try:
                async with asyncio.timeout(seconds):
                    return await attempt()
            except TimeoutError:
                failure = Failure(Meaning.UNAVAILABLE, f"no answer within {seconds:g} s")
            except self._errors as exc:
                failure = self.failure(exc, of_object=of_object)
            if failure.meaning is not Meaning.UNAVAILABLE:
                break
            if number + 1 < self._patience.attempts:
                await self.pause(number)
        raise self.error(key, failure)

    def failure(self, exc: Exception, *, of_object: bool = True) -> Failure:
        """What an exception of opendal means."""
        secrets = self._settings.secrets.values()
        return parse_failure(type(exc).__name__, str(exc), of_object=of_object, secrets=secrets)

    async def pause(self, number: int) -> None:
        """Wait before asking again after attempt `number`."""
        await asyncio.sleep(self._patience.pauses.delay(number + 1))

    def error(self, key: str, failure: Failure) -> Exception:
        """Our error for a failure that no further attempt will cure."""
        store, cause = self._settings.describe(), failure.cause
        match failure.meaning:
            case Meaning.MISSING:
                return ObjectMissing(store, key)
            case Meaning.THERE_ALREADY:
                return ThereAlready()
            case Meaning.PAST_THE_END:
                return PastTheEnd()
            case Meaning.NO_BUCKET:
                return BucketMissing(store, key, cause, _BUCKET_CURE)
            case Meaning.NOT_OFFERED:
                return NotOffered(store, key, cause, "use a store that has it")
            case Meaning.REFUSED:
                return StoreRefused(store, key, cause, _RIGHTS_CURE)
            case Meaning.BAD_NAME:
                return StoreRefused(store, key, cause, "use shorter names", is_name=True)
            case Meaning.UNAVAILABLE:
                return StoreUnavailable(store, key, cause)
