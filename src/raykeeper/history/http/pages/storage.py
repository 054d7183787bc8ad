"""The page of what each namespace has in the store, what it costs and how long it is kept."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.http.keeper_api.storage import KeptFor, NamespaceStorage, StorageAnswer, storage_answer
from raykeeper.history.http.pages.frame import page_response
from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.http.pages.sessions import SESSIONS_PATH
from raykeeper.history.http.pages.widgets import ago, facts, link, note, nothing, quiet, table
from raykeeper.history.query.history import History
from raykeeper.history.text import counted, size_text

STORAGE_PATH = "/storage"
_OFF = "This server removes nothing and measures nothing: start it with --retention to have sizes, or another one did."
_NONE = "No sizes are known. They appear here after the first sweep of a history server that runs with --retention."
_NUMBERS = ("Sessions", "Size", "Objects", "Cost a month", "Held", "Oldest")


async def get_storage_page(_: Request, history: History) -> Response:
    answer = await storage_answer(history)
    now = history.clock.now()
    body = [
        EMPTY if answer.has_retention else note(_OFF, "busy"),
        _totals(answer, now) if answer.namespaces else nothing(_NONE),
        _table(answer, now) if answer.namespaces else EMPTY,
    ]
    return page_response("Storage", join(body), section="storage")


def _totals(answer: StorageAnswer, now: datetime) -> Html:
    every = (*answer.namespaces, *([answer.others] if answer.others else []))
    unmeasured = sum(one.unmeasured for one in every)
    costs = [one.cost_per_month for one in every if one.cost_per_month is not None]
    size = size_text(sum(one.bytes for one in every))
    told = [
        ("Sessions", f"{sum(one.sessions for one in every):,}"),
        ("Size", f"{size}, {sum(one.objects for one in every):,} objects"),
        ("Not measured yet", counted(unmeasured, "session") if unmeasured else ""),
        ("Cost a month", _cost(sum(costs), answer.currency) if costs else ""),
        ("As of", ago(answer.as_of, now)),
    ]
    return tag("section", facts([(name, words) for name, words in told if words]), class_="card")


def _table(answer: StorageAnswer, now: datetime) -> Html:
    has_cost = any(one.cost_per_month is not None for one in answer.namespaces)
    headers = ["Namespace", "Sessions", "Size", "Objects", *(["Cost a month"] if has_cost else []), "Held", "Oldest"]
    rows = [_row(one, answer, now, has_cost=has_cost) for one in answer.namespaces]
    if answer.others:
        named = quiet(f"{counted(answer.left_out, 'smaller namespace')} together")
        rows.append((named, *_row(answer.others, answer, now, has_cost=has_cost)[1:]))
    return table("Namespaces", (*headers, "Kept"), rows, name="namespaces", hides_caption=True, numbers=_NUMBERS)


def _row(one: NamespaceStorage, answer: StorageAnswer, now: datetime, *, has_cost: bool) -> tuple[str, ...]:
    missing = join([" ", quiet(f"+ {one.unmeasured:,} not measured")]) if one.unmeasured else EMPTY
    cost = [_cost(one.cost_per_month or 0.0, answer.currency)] if has_cost else []
    return (
        link(one.namespace, f"{SESSIONS_PATH}?{urlencode({'namespace': one.namespace})}"),
        f"{one.sessions:,}",
        join([size_text(one.bytes), missing]),
        f"{one.objects:,}",
        *cost,
        f"{one.held:,}" if one.held else "",
        ago(one.oldest, now),
        _kept(one.kept) if one.kept else "",
    )


def _kept(kept: KeptFor) -> Html:
    """The rule of a namespace in a few words."""
    ages = (
        ("failed", kept.failed_days),
        ("succeeded", kept.succeeded_days),
        ("stopped", kept.stopped_days),
        ("unknown", kept.unknown_days),
    )
    lengths = {days for _, days in ages}
    words = [_days(lengths.pop())] if len(lengths) == 1 else [f"{name} {_days(days)}" for name, days in ages]
    words += [f"{kept.max_sessions:,} sessions"] if kept.max_sessions is not None else []
    words += [size_text(kept.max_bytes)] if kept.max_bytes is not None else []
    return join([", ".join(words), " ", quiet(f"(rule {kept.rule})")])


def _days(days: float | None) -> str:
    if days is None:
        return "for ever"
    return f"{days:.0f} days" if days >= 2 else f"{days * 24:.0f} hours"


def _cost(amount: float, currency: str) -> str:
    return f"{amount:,.2f} {currency}".strip()
