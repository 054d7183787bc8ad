"""Follows one selection of objects for ever: list, watch, and list again when the server forgot our version."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from raykeeper.api.meta import Object, ObjectKey, Resource
from raykeeper.backoff import Backoff
from raykeeper.clock import Clock
from raykeeper.errors import Unavailable
from raykeeper.kube.client import PAGE_SIZE
from raykeeper.kube.errors import ApiError, BadRequest, Expired, Forbidden, Invalid, NotDone, api_error
from raykeeper.kube.http.decoding import Page
from raykeeper.kube.http.requests import Selector
from raykeeper.kube.informers.watch import Bookmark, Deleted, Failed, Frame, Selection, Streams, watch
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.logs import Log

O = TypeVar("O", bound=Object)  # noqa: E741 - reads as "object" beside T for "anything"
T = TypeVar("T")
O_contra = TypeVar("O_contra", bound=Object, contravariant=True)

LASTING_FAILURES = 3  # one cut connection is everyday life; the third failure in a row is worth a line

log = Log("raykeeper.kube.informer")


@dataclass(frozen=True)
class WatchSettings:
    """How patiently an informer follows."""

    page_size: int = PAGE_SIZE
    """Objects per page of a list; a page of Ray pods is about 4 MB."""
    watch_seconds: tuple[int, int] = (300, 600)
    """A watch is ended by the server after a random time in this range, so that clients spread over its replicas."""
    silence_seconds: float = 100.0
    """A watch on which nothing came for this long is taken for dead: bookmarks come every minute."""
    short_watch_seconds: float = 1.0
    """A watch that ends sooner without a word counts as a failure, or a sick proxy would make us hammer the server."""
    backoff: Backoff = Backoff(base=0.5, limit=30.0, jitter=0.3)
    """Between attempts that failed."""
    streams_lists: bool = False
    """Have what there is sent as the beginning of a watch, where the server can do that: it holds no page in memory,
    nor do we. A server that cannot is asked for pages."""


class _NotStreamed(Exception):
    """The server does not know how to begin a watch with a list."""


class Source(Streams, Protocol):
    """What a reflector needs of the client."""

    def pages(
        self,
        resource: Resource[T],
        namespace: str | None = None,
        *,
        labels: Selector | None = None,
        fields: Selector | None = None,
        limit: int | None = PAGE_SIZE,
    ) -> AsyncGenerator[Page[T], None]: ...


class Sink(Protocol[O_contra]):
    """Where a reflector puts what it reads."""

    def keys(self, namespace: str | None) -> list[ObjectKey]: ...

    def put(self, item: O_contra) -> None: ...

    def remove(self, key: ObjectKey) -> None: ...


class Reflector(Generic[O]):
    """Keeps a sink in step with one selection; `synced` is set by the first complete list."""

    def __init__(
        self,
        kube: Source,
        selection: Selection[O],
        sink: Sink[O],
        metrics: KubeMetrics,
        settings: WatchSettings,
        clock: Clock,
    ) -> None:
        self.selection = selection
        self.synced = asyncio.Event()
        self.problem: str | None = None
        self._kube = kube
        self._sink = sink
        self._settings = settings
        self._clock = clock
        self._lists = metrics.informer_lists.labels(str(selection.resource))
        self._watch_ends = metrics.informer_watch_ends
        self._version: str | None = None  # where the next watch starts; None: list first
        self._streams_lists = settings.streams_lists
        self._unseen: set[ObjectKey] | None = None  # during a streamed list: what it has not shown so far
        self._failures = 0
        self._refusals = 0  # failures since the last progress for which this version may be the reason

    async def run(self) -> None:
        """Follow until cancelled; every failure of the world is waited out."""
        while True:
            try:
                if self._version is None and not self._streams_lists:
                    self._version = await self._list()
                    self._listed()
                await self._watch(self._version)
                self._ended("timeout")
            except _NotStreamed as exc:
                log.debug(
                    "the server streams no lists, it is asked for pages", selection=str(self.selection), cause=exc
                )
                self._streams_lists = False
            except Expired as exc:
                self._version = None
                await self._wait_out(exc, "expired")
            except (ApiError, Unavailable) as exc:
                self._doubt(exc)
                await self._wait_out(exc, "error")

    def _doubt(self, failure: ApiError | Unavailable) -> None:
        """List again once a watch from this version has failed often: an etcd that was restored does not know it."""
        if isinstance(failure, NotDone | Forbidden):  # the server is away, or will not let us list either
            return
        self._refusals += 1
        if self._refusals >= LASTING_FAILURES:
            self._refusals, self._version = 0, None
            self._streams_lists = False

    def _listed(self) -> None:
        self._lists.inc()
        self.synced.set()

    async def _list(self) -> str:
        """Bring the sink to one consistent state of the server and return its resource version."""
        try:
            version = await self._take_pages(self._settings.page_size)
        except Expired:
            # The pages took longer than etcd keeps history; in one answer nothing can expire half-way.
            version = await self._take_pages(None)
        return version

    async def _take_pages(self, page_size: int | None) -> str:
        """Put every object of a list into the sink, then remove what the list did not show.

        Pages go straight into the sink instead of a second copy: a list is never older than what a watch showed before,
        so each object only moves forward.
        """
        chosen = self.selection
        unseen = set(self._sink.keys(chosen.namespace))
        version = ""
        pages = self._kube.pages(
            chosen.resource, chosen.namespace, labels=chosen.labels, fields=chosen.fields, limit=page_size
        )
        async with contextlib.aclosing(pages):
            async for page in pages:
                version = page.resource_version
                for item in page.items:
                    unseen.discard(item.key)
                    self._sink.put(item)
        for key in unseen:
            self._sink.remove(key)
        return version

    async def _watch(self, version: str | None) -> None:
        """Take in one watch to its end; without a version, one that begins with a list."""
        started = self._clock.steady()
        self._unseen = set(self._sink.keys(self.selection.namespace)) if version is None else None
        batches = watch(
            self._kube,
            self.selection,
            version,
            timeout_seconds=random.randint(*self._settings.watch_seconds),  # noqa: S311 - spreads load, guards nothing
            silence=self._settings.silence_seconds,
        )
        try:
            async with contextlib.aclosing(batches):
                async for frames in batches:
                    self._connected()
                    for frame in frames:
                        self._take(frame)
        except (BadRequest, Invalid) as exc:
            if self._unseen is None:
                raise
            raise _NotStreamed(str(exc)) from exc
        finally:
            # A busy API server ends watches that it cannot serve fast enough: what was heard until then is progress.
            worked = self._version != version or self._clock.steady() - started >= self._settings.short_watch_seconds
            if worked:
                self._failures = 0
            if self._version != version:
                self._refusals = 0
        if self._unseen is not None:
            raise _NotStreamed("the watch ended before its first list did")
        if not worked:
            raise Unavailable(f"watch of {self.selection}", "ended as soon as it began, without a word")

    def _take(self, frame: Frame[O]) -> None:
        if isinstance(frame, Failed):
            status = frame.object
            raise api_error(f"watch of {self.selection}", status.code, status.reason, status.message)
        if isinstance(frame, Bookmark):
            if self._unseen is not None:
                self._end_first_list(frame, self._unseen)
        elif isinstance(frame, Deleted):
            self._sink.remove(frame.object.key)
        else:
            self._sink.put(frame.object)
        if self._unseen is None:
            self._version = frame.object.metadata.resource_version
        elif not isinstance(frame, Bookmark):
            self._unseen.discard(frame.object.key)

    def _end_first_list(self, bookmark: Bookmark, unseen: set[ObjectKey]) -> None:
        if not bookmark.ends_first_list:
            raise _NotStreamed("its first list has no end")
        for key in unseen:
            self._sink.remove(key)
        self._unseen = None
        self._listed()

    def _connected(self) -> None:
        """The server answers: whatever was wrong is over."""
        if self.problem is not None:
            log.info("informer follows again", selection=str(self.selection))
            self.problem = None

    async def _wait_out(self, failure: ApiError | Unavailable, cause: str) -> None:
        """Note a failure, say so once it lasts, and wait before the next attempt."""
        self._ended(cause)
        self._failures += 1
        if self.problem is None and self._failures >= LASTING_FAILURES:
            log.warning("informer does not follow the server", selection=str(self.selection), error=str(failure))
        if self._failures >= LASTING_FAILURES or not self.synced.is_set():
            self.problem = str(failure)
        # A first 410 is no fault of the server's: list again at once.
        tries = self._failures - 1 if isinstance(failure, Expired) else self._failures
        delay = self._settings.backoff.delay(tries) if tries else 0.0
        await asyncio.sleep(max(delay, failure.retry_after or 0.0))

    def _ended(self, cause: str) -> None:
        self._watch_ends.labels(str(self.selection.resource), cause).inc()
