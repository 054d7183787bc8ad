"""Who a token belongs to and what its owner may do, asked of the API server and remembered for seconds.

Guarantees: a right that was taken away, or a token that was revoked, is refused after `KEPT_SECONDS` at the latest.
What cannot be found out raises `Unavailable`, and never counts as a yes.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from raykeeper.api.meta import JSON
from raykeeper.clock import Clock
from raykeeper.errors import Unavailable
from raykeeper.kube.attributes import Attributes, attributes_of
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import ApiError, Forbidden
from raykeeper.kube.http.requests import Request
from raykeeper.kube.resources import SELF_SUBJECT_ACCESS_REVIEWS, SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS

KEPT_SECONDS: Final = 10.0
MOST_KEPT: Final = 10_000
MOST_PENDING: Final = 200
"""Questions under way at once. Whoever sends made-up tokens asks one each."""

T = TypeVar("T")


@dataclass(frozen=True)
class User:
    """Somebody whom Kubernetes, or an identity provider that it trusts, knows."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def to_spec(self) -> JSON:
        spec: JSON = {"user": self.name, "groups": list(self.groups)}
        if self.uid:
            spec["uid"] = self.uid
        if self.extra:
            spec["extra"] = {name: list(values) for name, values in self.extra}
        return spec


@dataclass
class Remembered(Generic[T]):
    """Answers by question, each asked once for all who want to know it at the same time."""

    clock: Clock
    _kept: OrderedDict[Hashable, tuple[float, T]] = field(default_factory=OrderedDict)
    _pending: dict[Hashable, asyncio.Future[T]] = field(default_factory=dict)

    async def find(self, question: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer, at most `KEPT_SECONDS` old. Raises what `ask` raises, and `Unavailable` when too many ask."""
        until, answer = self._kept.get(question, (0.0, None))
        if answer is not None and self.clock.steady() < until:
            return answer
        pending = self._pending.get(question)
        if pending is None:
            if len(self._pending) >= MOST_PENDING:
                raise Unavailable("access reviews", "too many at once", retry_after=1.0)
            pending = self._pending[question] = asyncio.ensure_future(self._asked(question, ask))
            pending.add_done_callback(_take_failure)
        # One caller that gives up must not take the answer from the others.
        return await asyncio.shield(pending)

    async def _asked(self, question: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        try:
            answer = await ask()
        finally:
            del self._pending[question]
        self._kept[question] = (self.clock.steady() + KEPT_SECONDS, answer)
        self._kept.move_to_end(question)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return answer


def _take_failure(answer: asyncio.Future[Any]) -> None:
    """Where all who asked have left, nobody else looks at a failure, and asyncio complains."""
    if not answer.cancelled():
        answer.exception()


@dataclass(frozen=True)
class Verdict:
    """What the API server said about a token."""

    user: User | None
    """None for a token that is not accepted."""
    problem: str = ""


class TokenReviews:
    """Asks whose a token is."""

    def __init__(self, kube: Kube, clock: Clock, audiences: Sequence[str] = ()) -> None:
        """Tokens must be made for one of `audiences`; none stands for the API server itself."""
        self._kube = kube
        self._audiences = tuple(audiences)
        self._remembered: Remembered[Verdict] = Remembered(clock)

    async def review(self, token: str) -> Verdict:
        """Whose it is. Raises `Unavailable`."""
        digest = hashlib.sha256(token.encode()).digest()  # the token itself stays out of memory
        return await self._remembered.find(digest, lambda: self._ask(token))

    async def _ask(self, token: str) -> Verdict:
        spec: JSON = {"token": token, **({"audiences": list(self._audiences)} if self._audiences else {})}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
        try:
            answer = await self._kube.create(TOKEN_REVIEWS, body)
        except ApiError as exc:
            raise Unavailable("token reviews", str(exc)) from exc
        status = answer.get("status") or {}
        if not status.get("authenticated"):
            return Verdict(None, "the token is not accepted by Kubernetes")
        granted = status.get("audiences") or ()
        if self._audiences and not set(self._audiences) & set(granted):
            # A server that does not know of audiences says nothing of them: such an answer is no yes.
            return Verdict(None, "the token is made for another audience")
        return Verdict(_user(status.get("user") or {}))


def _user(found: JSON) -> User:
    extra = tuple(sorted((name, tuple(values)) for name, values in (found.get("extra") or {}).items()))
    return User(found.get("username", ""), tuple(found.get("groups") or ()), found.get("uid", ""), extra)


class AccessReviews:
    """Asks what somebody may do."""

    def __init__(self, kube: Kube, clock: Clock) -> None:
        self._kube = kube
        self._remembered: Remembered[bool] = Remembered(clock)

    async def may(self, user: User, attributes: Attributes) -> bool:
        """Whether RBAC, or whatever else decides there, lets them. Raises `Unavailable`."""
        return await self._remembered.find((user, attributes), lambda: self.ask(user, attributes))

    async def ask(self, user: User, attributes: Attributes) -> bool:
        """The same, asked anew: for those who remember what they make of many answers."""
        spec = {**user.to_spec(), **attributes.to_spec()}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        try:
            answer = await self._kube.create(SUBJECT_ACCESS_REVIEWS, body)
        except ApiError as exc:
            raise Unavailable("subject access reviews", str(exc)) from exc
        return _is_allowed(answer)


async def check_right(kube: Kube, request: Request) -> None:
    """Raise `Forbidden` unless whoever this client acts for may make the request, which is not sent.

    Kubernetes itself is asked where it sees the caller; a client with our own rights is asked for its guard alone.
    """
    await kube.check(request)
    if not kube.shows_caller:
        return
    attributes = attributes_of(request.method, request.path)
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": attributes.to_spec()}
    if not _is_allowed(await kube.create(SELF_SUBJECT_ACCESS_REVIEWS, body)):
        raise Forbidden(request.about, 403, "Forbidden", attributes.refusal("the caller"))


def _is_allowed(review: JSON) -> bool:
    status = review.get("status") or {}
    return bool(status.get("allowed")) and not status.get("denied")
