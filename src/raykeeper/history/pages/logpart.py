"""The page of a log around a place in it. Pure."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.responses import HTMLResponse

from raykeeper.history.pages.addresses import log_path, overview_path, search_path, session_crumbs, session_path
from raykeeper.history.pages.frame import Crumb, page_response
from raykeeper.history.pages.markup import Html, join, tag
from raykeeper.history.pages.widgets import facts, link, nothing, pager
from raykeeper.history.search.logparts import LogPart
from raykeeper.history.search.passages import ShownLine
from raykeeper.layout.keys import SessionId


def log_part_page(session: SessionId, part: LogPart) -> HTMLResponse:
    crumbs = (*session_crumbs(session), Crumb(session.session, overview_path(session)))
    lines = tag("pre", join(map(_line, part.lines), "\n")) if part.lines else nothing("The log is empty here.")
    about = facts([("Node", part.node_id), ("Bytes", f"{part.size:,}"), ("More", join(_links(session, part), " · "))])
    return page_response(part.file, join([about, lines, _pager(session, part)]), section="search", crumbs=crumbs)


def _line(line: ShownLine) -> Html:
    return tag("mark", line.text or " ", id="here") if line.is_hit else join([line.text])


def _links(session: SessionId, part: LogPart) -> list[Html]:
    links = [link("Search in this session", search_path(session))]
    if part.is_newest:
        name = part.file.rpartition("/")[2]
        whole = {"node_id": part.node_id, "filename": part.file, "lines": -1, "download_filename": name}
        links.append(link("Download the whole log", f"{session_path(session)}api/v0/logs/file?{urlencode(whole)}"))
    return links


def _pager(session: SessionId, part: LogPart) -> Html:
    earlier, later = (
        None if at is None else log_path(session, part.node_id, part.file, part.generation, at)
        for at in (part.earlier, part.later)
    )
    return pager(first=earlier, following=later, words=("Earlier", "Later"))
