"""What namespaces have in the store, what that costs, and how long their sessions are kept."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from raykeeper.history.http.keeper_api.operation import Call, NoQuery, Operation
from raykeeper.history.query.history import History
from raykeeper.history.retention_policy import FOREVER, Outcome, RetentionPolicy, Rule
from raykeeper.layout.retention import NamespaceUsage

_GB = 1e9


class KeptFor(msgspec.Struct, frozen=True, kw_only=True):
    """The rule that a namespace has. A limit that is null does not exist."""

    rule: str
    succeeded_days: Annotated[float | None, Meta(description="Days after the end of a session that succeeded.")]
    failed_days: Annotated[float | None, Meta(description="The same for one that failed.")]
    stopped_days: Annotated[float | None, Meta(description="The same for one that was stopped.")]
    unknown_days: Annotated[float | None, Meta(description="The same for one that nobody read to its end.")]
    max_sessions: int | None
    max_bytes: int | None


class NamespaceStorage(msgspec.Struct, frozen=True, kw_only=True):
    """What one namespace has in the store."""

    namespace: str
    sessions: int
    bytes: int
    objects: int
    unmeasured: Annotated[int, Meta(description="Sessions that are missing in bytes and objects.")]
    held: Annotated[int, Meta(description="Sessions that somebody holds.")]
    oldest: Annotated[datetime | None, Meta(description="Start of its oldest session.")]
    cost_per_month: Annotated[float | None, Meta(description="By the price list; null without a price of storage.")]
    kept: Annotated[KeptFor | None, Meta(description="Null where this server removes nothing.")]


class StorageAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What all namespaces have in the store, the largest first."""

    as_of: Annotated[datetime | None, Meta(description="When it was added up; null where retention never ran.")]
    namespaces: tuple[NamespaceStorage, ...]
    others: Annotated[NamespaceStorage | None, Meta(description="The smallest ones together, where there are many.")]
    left_out: Annotated[int, Meta(description="How many those are.")]
    currency: str
    has_retention: Annotated[bool, Meta(description="Whether this server was given a retention file.")]


async def storage_answer(history: History) -> StorageAnswer:
    usage = await history.storage_usage()
    price = history.prices.storage_gb_month if history.prices else None
    policy = history.retention
    return StorageAnswer(
        as_of=usage.as_of if usage else None,
        namespaces=tuple(_told(one, price, policy) for one in usage.namespaces) if usage else (),
        others=_told(usage.others, price, None) if usage and usage.others else None,
        left_out=usage.left_out if usage else 0,
        currency=history.prices.currency if history.prices and price is not None else "",
        has_retention=policy is not None,
    )


def _told(one: NamespaceUsage, price: float | None, policy: RetentionPolicy | None) -> NamespaceStorage:
    return NamespaceStorage(
        namespace=one.namespace,
        sessions=one.sessions,
        bytes=one.bytes,
        objects=one.objects,
        unmeasured=one.unmeasured,
        held=one.held,
        oldest=one.oldest,
        cost_per_month=None if price is None else one.bytes / _GB * price,
        kept=_kept(policy.rule_for(one.namespace)) if policy else None,
    )


def _kept(rule: Rule) -> KeptFor:
    days = {one: None if rule.age_of(one) == FOREVER else rule.age_of(one).total_seconds() / 86_400 for one in Outcome}
    return KeptFor(
        rule=rule.name,
        succeeded_days=days[Outcome.SUCCEEDED],
        failed_days=days[Outcome.FAILED],
        stopped_days=days[Outcome.STOPPED],
        unknown_days=days[Outcome.UNKNOWN],
        max_sessions=rule.max_sessions,
        max_bytes=rule.max_bytes,
    )


async def _get_storage(call: Call[NoQuery]) -> StorageAnswer:
    return await storage_answer(call.history)


STORAGE_OPERATIONS = (
    Operation(
        "get_storage",
        "/storage",
        "What namespaces have in the store, and how long it is kept",
        NoQuery,
        StorageAnswer,
        _get_storage,
    ),
)
