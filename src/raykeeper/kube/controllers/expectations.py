"""Writes of ours that the informer has not shown yet, so that nobody decides on a cache that lacks them.

Needed where names are random: a reconcile that does not see the pods it has just created would create them again.
Objects are remembered one by one, not counted: whatever is seen twice, too early or by accident changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from raykeeper.clock import Clock
from raykeeper.logs import Log

K = TypeVar("K", bound=Hashable)

# An informer takes 100 s to notice a watch that has gone silent, and up to 30 s more until it lists again. What is not
# shown long after that is missing for another reason, and waiting the five minutes of client-go would not bring it.
SHOWN_WITHIN_SECONDS = 180.0
# The API server gives a request up after 60 s: what was not made by then, and shown soon after, never will be.
UNSURE_SECONDS = 75.0

log = Log("raykeeper.kube.expectations")


@dataclass
class _Create:
    """A create that was sent, or is about to be. Which object it made is known from the answer only."""

    deadline: float
    uid: str | None = None
    is_unsure: bool = False
    seen: set[str] = field(default_factory=set)  # uids shown before the answer came

    @property
    def is_shown(self) -> bool:
        return bool(self.seen) if self.is_unsure else self.uid in self.seen


@dataclass
class _Owned:
    """What is in flight for one owner."""

    creates: dict[str, _Create] = field(default_factory=dict)
    deletes: dict[str, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.creates or self.deletes)


class Expectations(Generic[K]):
    """Creates (by name) and deletes (by uid) in flight, per owner.

    A create is expected before it is sent, as its watch event may overtake the answer, and then ends in one of three
    ways: `create_answered`, `create_failed` or `create_unsure`. Informer handlers call `created_seen` and
    `deleted_seen` for every object they are told of.

    Guarantees: an owner is satisfied once the informer has shown each object that was made and each deletion that was
    accepted, and not before, unless that took longer than the time-out; then it is, after a warning.
    """

    def __init__(self, clock: Clock, shown_within_seconds: float = SHOWN_WITHIN_SECONDS) -> None:
        self._clock = clock
        self._shown_within_seconds = shown_within_seconds
        self._owners: dict[K, _Owned] = {}

    def __len__(self) -> int:
        """Owners with anything in flight; the others take no memory."""
        return len(self._owners)

    def expect_create(self, owner: K, name: str) -> None:
        """A create of this name is about to be sent."""
        self._owned(owner).creates[name] = _Create(self._deadline())

    def create_answered(self, owner: K, name: str, uid: str) -> None:
        """The server made the object; it is the one to wait for."""
        create = self._create(owner, name)
        if create is not None:
            create.uid, create.deadline = uid, self._deadline()
            self._drop_if_shown(owner, name)

    def create_failed(self, owner: K, name: str) -> None:
        """The server refused: certainly nothing was made."""
        self._owned(owner).creates.pop(name, None)
        self._drop_empty(owner)

    def create_unsure(self, owner: K, name: str) -> None:
        """No answer came, so the object may be there or not. The first one shown by this name is taken for ours."""
        create = self._create(owner, name)
        if create is not None:
            create.is_unsure, create.deadline = True, self._clock.steady() + UNSURE_SECONDS
            self._drop_if_shown(owner, name)

    def created_seen(self, owner: K, name: str, uid: str) -> None:
        """The informer shows an object, for the first time or again."""
        create = self._create(owner, name)
        if create is not None:
            create.seen.add(uid)
            self._drop_if_shown(owner, name)

    def expect_delete(self, owner: K, uid: str) -> None:
        """A delete of this very object is about to be sent (with its uid as precondition)."""
        self._owned(owner).deletes[uid] = self._deadline()

    def delete_failed(self, owner: K, uid: str) -> None:
        """The server refused or did not answer: if the object stays, deleting it again does no harm."""
        self._owned(owner).deletes.pop(uid, None)
        self._drop_empty(owner)

    def deleted_seen(self, owner: K, name: str, uid: str) -> None:
        """The informer shows that an object is gone, or going (it has a deletion timestamp)."""
        self.created_seen(owner, name, uid)  # what was made and went while no watch was open is never shown as present
        owned = self._owners.get(owner)
        if owned is not None:
            owned.deletes.pop(uid, None)
            self._drop_empty(owner)

    def satisfied(self, owner: K) -> bool:
        """Whether the cache can be trusted to show all we did. Warns of what took too long, and gives it up."""
        self._expire(owner)
        return owner not in self._owners

    def seconds_left(self, owner: K) -> float | None:
        """When to look again in case nothing is shown: seconds until the first time-out; None if satisfied."""
        owned = self._owners.get(owner)
        if owned is None:
            return None
        deadlines = [*(create.deadline for create in owned.creates.values()), *owned.deletes.values()]
        return max(min(deadlines) - self._clock.steady(), 0.0)

    def forget(self, owner: K) -> None:
        """The owner is gone."""
        self._owners.pop(owner, None)

    def forget_all(self, are_gone: Callable[[K], bool]) -> None:
        """These owners are gone. Only those with anything in flight are looked at."""
        for owner in [owner for owner in self._owners if are_gone(owner)]:
            self.forget(owner)

    def _deadline(self) -> float:
        return self._clock.steady() + self._shown_within_seconds

    def _owned(self, owner: K) -> _Owned:
        return self._owners.setdefault(owner, _Owned())

    def _create(self, owner: K, name: str) -> _Create | None:
        owned = self._owners.get(owner)
        return None if owned is None else owned.creates.get(name)

    def _drop_if_shown(self, owner: K, name: str) -> None:
        creates = self._owners[owner].creates
        if creates[name].is_shown:
            del creates[name]
            self._drop_empty(owner)

    def _drop_empty(self, owner: K) -> None:
        if not self._owners[owner]:
            del self._owners[owner]

    def _expire(self, owner: K) -> None:
        owned = self._owners.get(owner)
        if owned is None:
            return
        now = self._clock.steady()
        creates = [name for name, create in owned.creates.items() if create.deadline <= now]
        deletes = [uid for uid, deadline in owned.deletes.items() if deadline <= now]
        for name in creates:
            del owned.creates[name]
        for uid in deletes:
            del owned.deletes[uid]
        if creates or deletes:
            log.warning("own writes were not shown in time", owner=str(owner), creates=creates, deletes=deletes)
        self._drop_empty(owner)
