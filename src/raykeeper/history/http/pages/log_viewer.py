"""The viewer of log files: windows of numbered lines with links to each, errors, a filter, and the tail as it grows.

All of it works without a script, because every view has an address.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from raykeeper.history.entities.job import Job
from raykeeper.history.entities.job_list import find_job
from raykeeper.history.entities.log_files import FoundLog, WorkerFile, find_log, job_of_file, worker_files
from raykeeper.history.errors import LogUnknown, NotFound
from raykeeper.history.http.keeper_api.operation import Query
from raykeeper.history.http.keeper_api.sessions import Name
from raykeeper.history.http.pages.evidence import short_name
from raykeeper.history.http.pages.forms import given_parameters, page_query
from raykeeper.history.http.pages.frame import Crumb, page_response, session_crumbs
from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.http.pages.widgets import link, note, nothing, quiet
from raykeeper.history.logs.query import LogQuery, Suffix
from raykeeper.history.overview.driver_log import NOT_STARTED, NOT_STORED, NOT_SUBMITTED
from raykeeper.history.overview.job_rows import attempts_of_task, worker_names
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.history import History
from raykeeper.history.search.log_view import FoundError, LogWindow, ViewedFile, ViewedLine
from raykeeper.history.text import counted
from raykeeper.history.urls import job_path, log_path, node_path, overview_path, search_path, session_path
from raykeeper.layout.keys import SessionId
from raykeeper.layout.logs import StoredLog

STYLES, SCRIPTS = ("logs.css",), ("logs.js",)
FILTER_CHARS = 200
_LAST = 2**62
_FILES_LISTED = 200
_Offset = Annotated[int, Meta(ge=0, le=_LAST)]


class LogPageQuery(Query, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which part of which log: the first of these places that is given; without one, its beginning."""

    node: Annotated[str, Meta(max_length=300)] = ""
    file: Annotated[str, Meta(max_length=4096)] = ""  # as long as a path may be
    generation: Name = ""
    line: Annotated[int, Meta(ge=1, le=_LAST)] | None = None
    at: _Offset | None = None
    start: _Offset | None = None
    """The lines from here on."""
    before: _Offset | None = None
    """The lines before."""
    error: _Offset | None = None
    """The first error from here on."""
    filter: Annotated[str, Meta(max_length=FILTER_CHARS)] = ""


class LogOfQuery(Query, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose log: a task's or an actor's."""

    task: Name = ""
    attempt: Annotated[int, Meta(ge=0, le=2**31)] = 0
    actor: Name = ""
    suffix: Suffix = "out"


@dataclass(frozen=True)
class LogAddress:
    """The address of a viewer, and of the file in it."""

    base: str
    session: SessionId
    node_id: str
    file: str
    generation: str
    is_newest: bool
    """No other file has this path by now, so that Ray's own API means this one by it."""

    @property
    def params(self) -> dict[str, str]:
        known = {"node": self.node_id, "file": self.file, "generation": "" if self.is_newest else self.generation}
        return {name: value for name, value in known.items() if value}

    def href(self, **place: Any) -> str:
        """Another view of the same file."""
        return f"{self.base}?{urlencode({**self.params, **place})}"


async def get_log_page(request: Request, context: SessionContext, _: History) -> Response:
    """One file of a session. Raises NotFound and InvalidQuery."""
    query = _query(request)
    session = context.session.id
    address, stored = await _file(context, f"{session_path(session)}log", query.node, query.file, query.generation)
    viewed = await _viewed(query, address, ViewedFile(context.logs, session, stored), await context.is_over())
    if isinstance(viewed, Response):
        return viewed
    crumbs = (*session_crumbs(session), Crumb(session.session, overview_path(session)))
    node = link(f"node {address.node_id[:12]}", node_path(session, "", address.node_id))
    ways = [quiet(address.file), node, link("Search this session", search_path(session))]
    if job := job_of_file(address.file):
        ways.insert(1, link(f"job {job}", job_path(session, job)))
    body = join([tag("p", join(ways, " · ")), viewed])
    title = short_name(address.file)
    return page_response(title, body, section="sessions", crumbs=crumbs, styles=STYLES, scripts=SCRIPTS)


async def logs_tab(request: Request, context: SessionContext, job_name: str, base: str) -> Html | Response:
    """The log of a job's driver, or of one of its workers, and which there are."""
    query = _query(request)
    job = await find_job(context, job_name)
    workers = await _worker_files(context, job)
    chosen = (query.node, query.file) if query.file else (job.driver_node_id, job.log_name)
    listed = _files(job, workers, base, chosen)
    if not query.file and (missing := _missing(job)):
        return join([listed, nothing(missing)])
    try:
        address, stored = await _file(context, base, *chosen, query.generation)
    except NotFound:
        return join([listed, nothing(NOT_STORED)])
    if query == LogPageQuery():
        query = LogPageQuery(before=_LAST)
    viewed = await _viewed(
        query, address, ViewedFile(context.logs, context.session.id, stored), await context.is_over()
    )
    return viewed if isinstance(viewed, Response) else join([listed, viewed])


async def get_log_of(request: Request, context: SessionContext, _: History) -> Response:
    """The way to what a task or an actor wrote. Raises NotFound."""
    given = page_query(given_parameters(request.query_params.multi_items(), LogOfQuery), LogOfQuery)
    task = LogQuery(actor_id=given.actor, task_id=given.task, attempt_number=given.attempt, suffix=given.suffix)
    try:
        found = await find_log(context, task)
    except LogUnknown as exc:
        worker = await _worker_of(context, given)
        if worker is None:
            raise NotFound(str(exc)) from exc
        found = worker
    path = log_path(context.session.id, found.node_id, found.stored.path, at=found.start if found.is_range else None)
    return RedirectResponse(path, 302)


async def _worker_of(context: SessionContext, given: LogOfQuery) -> FoundLog | None:
    """What the worker of a task wrote, where nobody knows which part of it the task did."""
    attempts = await attempts_of_task(context, given.task) if given.task else ()
    one = next((one for one in attempts if one.attempt_number == given.attempt), None)
    if one is None or not (one.node_id and one.pid):
        return None
    try:
        return await find_log(context, LogQuery(node_id=one.node_id, pid=one.pid, suffix=given.suffix))
    except LogUnknown:
        return None


def _query(request: Request) -> LogPageQuery:
    return page_query(given_parameters(request.query_params.multi_items(), LogPageQuery), LogPageQuery)


async def _file(
    context: SessionContext, base: str, node_id: str, file: str, generation: str
) -> tuple[LogAddress, StoredLog]:
    session = context.session.id
    files = await context.logs.files(session, node_id)
    newest = files.by_path.get(file)
    stored = files.by_generation.get(generation) if generation else newest
    if stored is None:
        raise NotFound(f"there is no log {file} of node {node_id} in session {session}")
    address = LogAddress(base, session, node_id, stored.path or file, stored.generation, stored is newest)
    return address, stored


async def _viewed(query: LogPageQuery, address: LogAddress, file: ViewedFile, is_over: bool) -> Html | Response:
    """What the query asks for; the way to an error that was found."""
    if query.filter:
        window = await file.with_words(query.filter, query.start or 0)
        return _viewer(address, window, query, is_over=is_over)
    if query.error is not None:
        found = await file.next_error(query.error)
        if found.offset is not None:
            return RedirectResponse(f"{address.href(at=found.offset)}#here", 302)
        window = await file.before_offset(found.looked_until)
        return join([_no_error(address, query.error, found, window), _viewer(address, window, query, is_over=is_over)])
    window, told = await _window(query, file)
    return join([told, _viewer(address, window, query, is_over=is_over)])


async def _window(query: LogPageQuery, file: ViewedFile) -> tuple[LogWindow, Html]:
    if query.line is not None:
        found = await file.at_line(query.line)
        if found is not None:
            return found, EMPTY
        words = f"Line {query.line:,} is far down: the lines are being counted. Reload this page in some seconds."
        return await file.from_offset(0), note(words, "busy")
    if query.at is not None:
        return await file.around(query.at), EMPTY
    if query.before is not None:
        return await file.before_offset(query.before), EMPTY
    return await file.from_offset(query.start or 0), EMPTY


def _no_error(address: LogAddress, start: int, found: FoundError, window: LogWindow) -> Html:
    if found.looked_until >= window.size:
        return note("There is no further error in this log." if start else "There is no error in this log.", "good")
    words = f"No error in {found.looked_until - start:,} bytes from here on."
    onward = link("Go on", address.href(error=found.looked_until))
    return tag("p", words, " ", onward, class_="note", role="note")


def _viewer(address: LogAddress, window: LogWindow, query: LogPageQuery, *, is_over: bool) -> Html:
    shown = lines_part(window.lines, address, is_filtered=bool(query.filter))
    empty = "No line holds that." if query.filter else "The log is empty here."
    lines = tag(
        "div",
        shown or tag("p", empty, class_="quiet"),
        class_="log",
        role="region",
        aria_label=f"Lines of {address.file}",
        tabindex="0",
        data_counting=window.is_counting,
        data_line_href=address.href(line=""),
    )
    pages = _filter_pager(address, window, query) if query.filter else _pager(address, window)
    return tag("section", _bar(address, window, query, is_over=is_over), lines, pages, class_="viewer")


def lines_part(lines: Iterable[ViewedLine], address: LogAddress, *, is_filtered: bool = False) -> Html:
    """Rows of lines; each number is the address of its line."""
    return join(_row(line, address, is_filtered=is_filtered) for line in lines)


def _row(line: ViewedLine, address: LogAddress, *, is_filtered: bool) -> Html:
    text = tag("span", *(_styled(*part) for part in line.texts), class_="text", id="here" if line.is_here else None)
    kinds = ["row", line.level, "here" if line.is_here else "", "gap" if line.is_gap else ""]
    name = None if line.is_gap else f"o{line.offset}" if line.number is None else f"L{line.number}"
    number = EMPTY if line.is_gap else _number(line, address, is_filtered=is_filtered)
    return tag("div", number, text, "\n", class_=" ".join(kind for kind in kinds if kind), id=name)


def _number(line: ViewedLine, address: LogAddress, *, is_filtered: bool) -> Html:
    if line.number is None:
        href, words, told = f"{address.href(at=line.offset)}#here", "·", f"Byte {line.offset}"
        return tag("a", words, href=href, class_="number", tabindex="-1", aria_label=told)
    within = f"#L{line.number}"
    href = address.href(line=line.number) + within if is_filtered else within
    return tag("a", str(line.number), href=href, class_="number", tabindex="-1")


def _styled(text: str, style: str) -> Html:
    if not style:
        return join([text])
    return tag("span", text, class_=" ".join(f"ansi-{name}" for name in style.split()))


def _bar(address: LogAddress, window: LogWindow, query: LogPageQuery, *, is_over: bool) -> Html:
    """What can be done with the file."""
    here = next((line.end for line in window.lines if line.is_here), window.begin)
    buttons = [
        tag("a", "First error", href=address.href(error=0), class_="button"),
        tag("a", "Next error", href=address.href(error=here), class_="button", data_jumps="next"),
        tag("label", tag("input", type="checkbox", class_="wraps", checked=True), " Wrap"),
    ]
    if address.is_newest:
        buttons.append(tag("a", "Download", href=_download(address), class_="button"))
    if not is_over and window.end >= window.size and not query.filter:
        buttons.append(_follow_button(address, window))
    return tag("div", _filter_form(address, query), *buttons, _told(window, query), class_="log-bar")


def _filter_form(address: LogAddress, query: LogPageQuery) -> Html:
    hidden = [tag("input", type="hidden", name=name, value=value) for name, value in address.params.items()]
    box = tag(
        "input",
        type="search",
        name="filter",
        value=query.filter,
        maxlength=FILTER_CHARS,
        placeholder="Only lines with …",
        aria_label="Only lines with",
    )
    everything = tag("a", "All lines", href=address.href()) if query.filter else EMPTY
    return tag("form", *hidden, box, tag("button", "Filter"), everything, action=address.base, method="get")


def _follow_button(address: LogAddress, window: LogWindow) -> Html:
    """Hidden until the script shows it: without one nothing would follow."""
    place = {"start": window.end, "line": window.next_number or 0}
    params = {"node": address.node_id, "file": address.file, "generation": address.generation, **place}
    tail = f"{session_path(address.session)}log/tail?{urlencode(params)}"
    return tag("button", "Follow", type="button", data_follows=tail, hidden=True)


def _download(address: LogAddress) -> str:
    name = address.file.rpartition("/")[2]
    whole = {"node_id": address.node_id, "filename": address.file, "lines": -1, "download_filename": name}
    return f"{session_path(address.session)}api/v0/logs/file?{urlencode(whole)}"


def _told(window: LogWindow, query: LogPageQuery) -> Html:
    if query.filter:
        more = "" if window.end >= window.size else " so far"
        words = f"{counted(len(window.lines), 'line')} with “{query.filter}”{more}"
        words += f" in {window.scanned:,} of {window.size:,} bytes"
    elif window.is_counting:
        words = f"Bytes {window.begin:,} to {window.end:,} of {window.size:,}; lines are being counted"
    else:
        numbers = [line.number for line in window.lines if line.number is not None]
        lines = f"Lines {numbers[0]:,} to {numbers[-1]:,}, " if numbers else ""
        words = f"{lines}{window.end - window.begin:,} of {window.size:,} bytes"
    return tag("span", words, role="status", class_="quiet")


def _pager(address: LogAddress, window: LogWindow) -> Html:
    links = []
    if window.begin > 0:
        links += [link("Beginning", address.href()), link("Earlier", address.href(before=window.begin))]
    if window.end < window.size:
        links += [link("Later", address.href(start=window.end)), link("End", address.href(before=_LAST))]
    return tag("nav", *links, aria_label="Parts of the log", class_="pager") if links else EMPTY


def _filter_pager(address: LogAddress, window: LogWindow, query: LogPageQuery) -> Html:
    links = [link("From the beginning", address.href(filter=query.filter))] if window.begin > 0 else []
    if window.end < window.size:
        links.append(link("Load more", address.href(filter=query.filter, start=window.end)))
    return tag("nav", *links, aria_label="Parts of the log", class_="pager") if links else EMPTY


def _missing(job: Job) -> str:
    """Why a job has no driver log; empty where it should have one."""
    if not job.is_submission:
        return NOT_SUBMITTED
    return "" if job.driver_node_id else NOT_STARTED


async def _worker_files(context: SessionContext, job: Job) -> list[tuple[str, WorkerFile, StoredLog, str]]:
    """Node, file and name of every worker that worked for the job and wrote something."""
    if not job.job_id:
        return []
    found = []
    names = await worker_names(context, job.job_id)
    for node_id in await context.logs.node_ids(context.session.id):
        by_path = (await context.logs.files(context.session.id, node_id)).by_path
        for one in worker_files(by_path, job.job_id):
            if by_path[one.path].size:
                found.append((node_id, one, by_path[one.path], names.get(one.worker_id, "")))
    return sorted(found, key=lambda one: (not one[3], one[3], -one[2].last_read_ns))


def _files(
    job: Job, workers: Iterable[tuple[str, WorkerFile, StoredLog, str]], base: str, chosen: tuple[str, str]
) -> Html:
    """Every file, the one that is shown marked; nothing where there is no choice."""
    items = [_file_link(base, "Driver log", (job.driver_node_id, job.log_name), chosen)] if job.is_submission else []
    for node_id, one, stored, name in list(workers)[:_FILES_LISTED]:
        words = join([f"{name or f'worker {one.pid}'} .{one.suffix} ", quiet(f"{stored.size:,} bytes")])
        items.append(_file_link(base, words, (node_id, one.path), chosen))
    if len(items) < 2:
        return EMPTY
    listed = tag("ul", *(tag("li", item) for item in items))
    return tag(
        "details", tag("summary", f"{counted(len(items), 'file')} of this job"), listed, class_="files", open=True
    )


def _file_link(base: str, words: str, place: tuple[str, str], chosen: tuple[str, str]) -> Html:
    node_id, file = place
    href = f"{base}?{urlencode({'node': node_id, 'file': file, 'before': _LAST})}"
    return tag("a", words, href=href, aria_current="true" if place == chosen else None)
