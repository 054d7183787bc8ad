"""The pages of searches and of parts of logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from raykeeper.history.errors import InvalidQuery
from raykeeper.history.http.keeper_api.search import (
    HITS,
    SECONDS,
    SearchQuery,
    SessionsSearchQuery,
    WordsQuery,
    search_in_session,
    search_in_sessions,
)
from raykeeper.history.http.pages.forms import Given, choice, given_parameters, link_with, page_query, text_field
from raykeeper.history.http.pages.frame import Crumb, page_response, session_crumbs
from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.http.pages.widgets import Tone, badge, link, moment, note, nothing, pager, quiet
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.history import History
from raykeeper.history.report.fingerprint import digest, title_of
from raykeeper.history.search.model import WORDS_CHARS, Hit, Line, SearchAnswer, SessionsSearchAnswer, Unsearched
from raykeeper.history.urls import overview_path, search_path
from raykeeper.layout.keys import SessionId

ALL_PATH = "/search"
_KINDS = {"": "everything", "error": "errors", "event": "events", "log": "logs"}
_TONES: dict[str, Tone] = {"error": "bad", "event": "warn", "log": "quiet"}
_TOLD_UNSEARCHED = 10
_MEGABYTE = 1_000_000


def _session_search_page(
    session: SessionId, given: Given, answer: SearchAnswer | None, refused: str = "", status: int = 200
) -> HTMLResponse:
    """A search in one session; without an answer, the form that asks for it."""
    path = search_path(session)
    crumbs = (*session_crumbs(session), Crumb(session.session, overview_path(session)))
    fields = [
        text_field("Node id", "node", given),
        text_field("Job", "job", given),
        text_field("From", "since", given, "date"),
        text_field("Until", "until", given, "date"),
    ]
    body = [_form(path, given, fields), _refused(refused)]
    if answer is not None:
        body += [_progress(answer), _unsearched(answer.unsearched), _hits(answer.hits, answer.complete, names=False)]
        body.append(_hits_pager(path, given, answer.next))
    return page_response("Search", join(body), status, section="search", crumbs=crumbs)


def _sessions_search_page(
    given: Given, answer: SessionsSearchAnswer | None, refused: str = "", status: int = 200
) -> HTMLResponse:
    """A search in many sessions; without an answer, the form that asks for it."""
    fields = [
        text_field("Namespace", "namespace", given),
        text_field("Cluster", "cluster", given),
        text_field("RayJob or RayService", "owner", given),
        text_field("Started from", "since", given, "date"),
        text_field("Started until", "until", given, "date"),
    ]
    body = [_form(ALL_PATH, given, fields), _refused(refused)]
    if answer is None:
        body.append(tag("p", quiet("All sessions are searched, the newest first.")))
    else:
        body += [_sessions(answer), _unsearched(answer.unsearched), _hits(answer.hits, answer.complete, names=True)]
        body.append(_hits_pager(ALL_PATH, given, answer.next))
    return page_response("Search", join(body), status, section="search")


def _form(path: str, given: Given, fields: Iterable[Html]) -> Html:
    """One box; everything else is folded until somebody wants it, or has chosen something there."""
    words = tag("input", type="search", name="text", value=given.get("text", ""), maxlength=WORDS_CHARS, required=True)
    more = [choice("In", "kind", given, _KINDS), text_field("Only files like", "file", given), *fields]
    is_open = bool(set(given) - {"text", "regex", "ignore_case", "after", "limit", "context", "seconds"})
    folded = tag("details", tag("summary", "Filters"), *more, open=is_open)
    shared = [
        tag("label", "Search", words, class_="words"),
        _check("Match case", "ignore_case", "false", given),
        _check("Regular expression", "regex", "true", given),
    ]
    button = tag("button", "Search", type="submit")
    # The header of every page has a search of its own: a name tells readers of landmarks which one this is.
    named = {"role": "search", "aria_label": "Search with filters"}
    return tag("form", *shared, button, folded, action=path, method="get", class_="filters", **named)


def _check(words: str, name: str, value: str, given: Given) -> Html:
    box = tag("input", type="checkbox", name=name, value=value, checked=given.get(name) == value)
    return tag("label", box, f" {words}", class_="check")


def _refused(words: str) -> Html:
    return note(words, "bad") if words else EMPTY


def _progress(answer: SearchAnswer) -> Html:
    found = _number(len(answer.hits), "hit")
    if answer.complete:
        return tag("p", f"{found} here; all was searched.", role="status")
    if not answer.scanned_bytes:
        return tag("p", f"{found} so far; logs are still to be searched.", role="status")
    done, size = answer.scanned_bytes / answer.total_bytes, answer.total_bytes / _MEGABYTE
    return tag("p", f"{found} so far; {done:.0%} of {size:,.1f} MB of stored logs are searched.", role="status")


def _sessions(answer: SessionsSearchAnswer) -> Html:
    found, searched = _number(len(answer.hits), "hit"), _number(answer.searched_sessions, "session")
    if answer.complete:
        return tag("p", f"{found}. All sessions were searched.", role="status")
    back = join([", back to ", moment(answer.searched_back_to)]) if answer.searched_back_to else EMPTY
    return tag("p", f"{found} so far in {searched}", back, ".", role="status")


def _number(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _unsearched(missing: Sequence[Unsearched]) -> Html:
    """What an empty list would else hide."""
    if not missing:
        return EMPTY
    items = [tag("li", f"{one.what}: {one.reason}") for one in missing[:_TOLD_UNSEARCHED]]
    if len(missing) > _TOLD_UNSEARCHED:
        items.append(tag("li", f"and {len(missing) - _TOLD_UNSEARCHED:,} more"))
    return tag("div", tag("p", "This could not be searched:"), tag("ul", *items), class_="note warn", role="note")


def _hits(hits: Sequence[Hit], is_complete: bool, *, names: bool) -> Html:
    """Messages by what they say, then lines of logs by their file."""
    if not hits:
        return nothing("No matches." if is_complete else "No matches so far.")
    alike: dict[str, list[Hit]] = {}
    for hit in hits:
        if hit.what != "log":
            alike.setdefault(_message_key(hit), []).append(hit)
    lines = [hit for hit in hits if hit.what == "log"]
    files = (_group(list(group), names=names) for _, group in groupby(lines, key=_source))
    return join([*(_alike(group, names=names) for group in alike.values()), *files])


def _message_key(hit: Hit) -> str:
    """The same for messages that differ in ids, paths, numbers and quoted values alone, as in fingerprints."""
    said = "\n".join(line.text for line in hit.lines if line.is_hit)
    return f"{hit.kind} {title_of(digest(said))}"


def _alike(hits: Sequence[Hit], *, names: bool) -> Html:
    """The first of them in full, and the others folded behind it."""
    first, *others = hits
    shown = _group([first], names=names)
    if not others:
        return shown
    times, sessions = sum(hit.count for hit in hits), len({(hit.namespace, hit.cluster, hit.session) for hit in hits})
    words = f"{len(others):,} more like it"
    where = f" in {_number(sessions, 'session')}" if names else ""
    summary = tag("summary", f"{words}, {_number(times, 'time')} in all{where}")
    return join([shown, tag("details", summary, *(_group([hit], names=names) for hit in others), class_="alike")])


def _source(hit: Hit) -> tuple[str, ...]:
    """Hits of one file stand together; messages stand alone."""
    alone = "" if hit.what == "log" else hit.path
    return hit.namespace, hit.cluster, hit.session, hit.node_id, hit.title, hit.generation, alone


def _group(hits: Sequence[Hit], *, names: bool) -> Html:
    first = hits[0]
    session = SessionId(first.namespace, first.cluster, first.session)
    above = [badge(first.kind, _TONES[first.kind]), " ", link(first.title or first.what, first.path)]
    told = [f"{first.what}" if first.what != "log" else "", f"{first.count:,} times" if first.count > 1 else ""]
    told.append(f"node {first.node_id[:12]}" if first.node_id else "")
    about = [quiet(" · ".join(words for words in told if words)), " ", moment(first.at)]
    if names:
        about += [" ", link(f"{first.namespace} / {first.cluster} / {first.session}", overview_path(session))]
    passages = [_passage(lines, hits) for lines in _merged_passages(hits)]
    return tag("section", tag("h2", *above), tag("p", *about), *passages, class_="hit")


def _merged_passages(hits: Iterable[Hit]) -> list[list[Line]]:
    """The lines of a file's hits; those of hits that touch each other are one passage, each line once."""
    passages: list[list[Line]] = []
    for hit in hits:
        shown = {line.offset: place for place, line in enumerate(passages[-1])} if passages else {}
        if not passages or hit.lines[0].offset not in shown:
            passages.append(list(hit.lines))
            continue
        for line in hit.lines:
            if line.offset not in shown:
                passages[-1].append(line)
            elif line.is_hit:
                passages[-1][shown[line.offset]] = line
    return passages


def _passage(lines: Sequence[Line], hits: Sequence[Hit]) -> Html:
    paths = {line.offset: hit.path for hit in hits for line in hit.lines if line.is_hit}
    return tag("pre", join((_hit_line(line, paths.get(line.offset, "")) for line in lines), "\n"))


def _hit_line(line: Line, path: str) -> Html:
    return tag("a", tag("mark", line.text or " "), href=path) if line.is_hit else join([line.text])


def _hits_pager(path: str, given: Given, following: str | None) -> Html:
    first = link_with(path, given, after="") if "after" in given else None
    return pager(
        first=first,
        following=link_with(path, given, after=following) if following else None,
        words=("From the beginning", "Load more"),
    )


_CONTEXT_LIMIT = 4  # thirty hits of nine lines of 400 characters: a page stays below 200 kB
W = TypeVar("W", bound=WordsQuery)


async def get_session_search_page(request: Request, context: SessionContext, history: History) -> Response:
    """What was found; without words, or with what cannot be looked for, the form that asks for them."""
    session = context.session.id
    given = given_parameters(request.query_params.multi_items(), SearchQuery)
    if "text" not in given:
        return _session_search_page(session, given, None)
    try:
        answer = await search_in_session(history, session, _for_page(page_query(_any_case(given), SearchQuery)))
    except InvalidQuery as exc:
        return _session_search_page(session, given, None, _sentence(exc), 400)
    return _session_search_page(session, given, answer)


async def get_search_page(request: Request, history: History) -> Response:
    """The same in many sessions."""
    given = given_parameters(request.query_params.multi_items(), SessionsSearchQuery)
    if "text" not in given:
        return _sessions_search_page(given, None)
    try:
        answer = await search_in_sessions(history, _for_page(page_query(_any_case(given), SessionsSearchQuery)))
    except InvalidQuery as exc:
        return _sessions_search_page(given, None, _sentence(exc), 400)
    return _sessions_search_page(given, answer)


def _any_case(given: Given) -> Given:
    """People do not remember how an error was spelled; programs say what they want."""
    return {"ignore_case": "true", **given}


def _for_page(query: W) -> W:
    """The same, with no more lines than a page has room for, nor a longer wait than people have patience."""
    return msgspec.structs.replace(
        query,
        limit=min(query.limit, HITS),
        context=min(query.context, _CONTEXT_LIMIT),
        seconds=min(query.seconds, SECONDS),
    )


def _sentence(error: InvalidQuery) -> str:
    """Errors are lower case without a full stop, because they stand in log lines."""
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."
