"""Changes of a RayService, stopped after every single write of the operator and gone on with by the next one.

Many interruptions are played side by side under one operator, each in a namespace of its own with its own heads.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from bed.control_plane import ControlPlane
from raykeeper.api.meta import Object
from raykeeper.operator.kinds import WATCHED_RAYCLUSTERS
from support.conditions import eventually
from support.crashes import CrashAfter
from support.operating import Given, Operator, operating_each
from support.rayservice_scene import ServiceScene

AT_ONCE = 12
"""Interruptions that are played at once: each waits most of the time."""
MOST_WRITES = 72
PATIENCE = 300.0

S = TypeVar("S", bound=ServiceScene)
Portrait = dict[str, Any]
Deed = Callable[[S], Awaitable[None]]
Question = Callable[[S], Awaitable[bool]]


@dataclass(frozen=True)
class Story(Generic[S]):
    """What is changed about a service, and how one knows that the change is done."""

    scene: Callable[[ControlPlane], contextlib.AbstractAsyncContextManager[S]]
    before: Sequence[tuple[Deed[S], Question[S]]]
    """What is done first, undisturbed, and what is waited for each time."""
    change: Deed[S]
    """Done while no operator is there."""
    is_done: Question[S]
    clusters: int
    """How many there must have been in all."""
    portrait: Callable[[S], Awaitable[Portrait]]
    """What must be the same in the end."""
    watch: Deed[S] | None = None
    """Runs for ever beside the change, and fails where something is wrong."""
    given: Given = field(default_factory=Given)
    """The circumstances of the operators."""


@dataclass
class _Play(Generic[S]):
    """One interruption."""

    scene: S
    fence: CrashAfter
    made: set[str] = field(default_factory=set)
    """Uids of all clusters that ever were."""

    def note(self, _old: Object | None, new: Object | None) -> None:
        if new is not None and new.metadata.namespace == self.scene.namespace:
            self.made.add(new.metadata.uid)


async def ends_of(plane: ControlPlane, story: Story[S]) -> list[tuple[bool, Portrait]]:
    """The ends after no write, after one, after two and so on, up to one that was not interrupted: whether it was not,
    and the portrait.
    """
    ends: list[tuple[bool, Portrait]] = []
    while not any(is_undisturbed for is_undisturbed, _ in ends):
        assert len(ends) < MOST_WRITES, "it never ends"
        ends += await _interrupted(plane, story, range(len(ends), len(ends) + AT_ONCE))
    return ends


def writes_of(ends: Sequence[tuple[bool, Portrait]]) -> int:
    """How many writes the change takes. Fails where an end differs from that of a change that was not interrupted."""
    undisturbed = next(number for number, (is_undisturbed, _) in enumerate(ends) if is_undisturbed)
    for writes, (_, end) in enumerate(ends):
        assert end == ends[undisturbed][1], f"stopped after {writes} writes"
    return undisturbed


async def _interrupted(plane: ControlPlane, story: Story[S], numbers: Sequence[int]) -> list[tuple[bool, Portrait]]:
    async with contextlib.AsyncExitStack() as stack:
        scenes = [await stack.enter_async_context(story.scene(plane)) for _ in numbers]
        plays = [_Play(scene, CrashAfter(writes)) for scene, writes in zip(scenes, numbers, strict=True)]
        async with _operated(plays, story, is_fenced=False):
            for do, question in story.before:
                await asyncio.gather(*(do(scene) for scene in scenes))
                await _all(scenes, question)
        await asyncio.gather(*(story.change(scene) for scene in scenes))
        watching = asyncio.gather(*(story.watch(scene) for scene in scenes if story.watch))
        async with _operated(plays, story, is_fenced=True):
            await _all(plays, lambda one: _is_over(one, story))
        async with _operated(plays, story, is_fenced=False):
            await _all(scenes, story.is_done)
        assert story.watch is None or not watching.done(), watching.exception()
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        assert [len(one.made) for one in plays] == [story.clusters] * len(plays)
        return [(not one.fence.is_spent, await story.portrait(one.scene)) for one in plays]


async def _is_over(play: _Play[S], story: Story[S]) -> bool:
    return play.fence.is_spent or await story.is_done(play.scene)


T = TypeVar("T")


async def _all(items: Sequence[T], question: Callable[[T], Awaitable[bool]]) -> None:
    """What is asked for stays so once it is: one after the other is waited for."""
    for item in items:
        await eventually(functools.partial(question, item), seconds=PATIENCE)


@contextlib.asynccontextmanager
async def _operated(plays: Sequence[_Play[S]], story: Story[S], *, is_fenced: bool) -> AsyncIterator[Operator]:
    """One operator over all namespaces, each with its own heads, and with its own crash."""
    each: dict[str, Given] = {one.scene.namespace: Given(heads_at=one.scene.heads.url_of) for one in plays}
    if is_fenced:
        each = {one.scene.namespace: Given(**each[one.scene.namespace], fence=one.fence) for one in plays}
    async with operating_each(plays[0].scene.plane.admin_kubeconfig, each, **story.given) as operator:
        for play in plays:
            operator.informers.of(WATCHED_RAYCLUSTERS).on_change(play.note)
        await operator.informers.wait_synced()
        yield operator
