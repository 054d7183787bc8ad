"""Makes a bucket that is not there, as KubeRay does: S3 buckets and Azure containers, where keys are given.

opendal has no call for it. With credentials from the surroundings we have nothing to sign with, and with Google and
Alibaba a bucket has an owner and a place that somebody must choose: there the error says to create it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from raykeeper.clock import Clock
from raykeeper.storage.backends.backend import HttpRequest, StoreSettings
from raykeeper.storage.errors import BucketMissing, StoreUnavailable
from raykeeper.storage.remote.plainhttp import send

_CURE = "create it yourself, or give these credentials the right to"
_CONFLICT = 409  # made by somebody else meanwhile, or another's: the next write will tell


class BucketMaker:
    """Makes the bucket of one store."""

    def __init__(
        self,
        settings: StoreSettings,
        request: Callable[[datetime], HttpRequest],
        clock: Clock,
        seconds: float,
    ) -> None:
        self._settings = settings
        self._request = request
        self._clock = clock
        self._seconds = seconds

    async def make(self) -> None:
        """Make the bucket; raises `BucketMissing` where the server does not want to, and says why."""
        store, bucket = self._settings.describe(), self._settings.bucket
        try:
            answer = await send(self._request(self._clock.now()), self._seconds)
        except OSError as exc:
            raise StoreUnavailable(store, bucket, f"the bucket could not be created: {exc}") from exc
        if answer.status >= 500:
            raise StoreUnavailable(store, bucket, f"the bucket could not be created: status {answer.status}")
        if answer.status >= 400 and answer.status != _CONFLICT:
            cause = f"there is no bucket, and creating it was answered with status {answer.status}"
            raise BucketMissing(store, bucket, cause, _CURE)


def bucket_maker(settings: StoreSettings, clock: Clock, seconds: float) -> BucketMaker | None:
    """Who makes the bucket of these settings; None where nobody can."""
    request = settings.backend.bucket_request and settings.backend.bucket_request(settings)
    return BucketMaker(settings, request, clock, seconds) if request else None
