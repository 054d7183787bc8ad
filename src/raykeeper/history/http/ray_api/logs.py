"""`/api/v0/logs`: the log files of one node in groups, one of them, or all in an archive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.entities.log_files import FoundLog, find_log, is_node, node_of_ip
from raykeeper.history.errors import InvalidQuery, NotThere, Unanswerable
from raykeeper.history.http.responses import dashboard_response, refused_response, text_response
from raykeeper.history.http.streaming import streamed
from raykeeper.history.logs.names import InvalidPattern, grouped, matching_names
from raykeeper.history.logs.query import ALL_LINES, LogQuery, parse_log_query, to_int, without_codes
from raykeeper.history.logs.reader import Member, MissingLines, tar_gz
from raykeeper.history.logs.store import FilePlace, NodeFiles
from raykeeper.history.query.context import SessionContext


async def get_log(request: Request, context: SessionContext) -> Response:
    """Raises Unanswerable and LogUnknown."""
    query = parse_log_query(request.query_params, request.path_params["media_type"])
    found = await find_log(context, query)
    headers = {"Content-Disposition": attachment(query.download_name)}
    pieces = read_log(context, query, found)
    return await streamed(request, context.logs.bodies, pieces, headers=headers, media_type="text/plain")


async def read_log(context: SessionContext, query: LogQuery, found: FoundLog) -> AsyncIterator[bytes]:
    """The last lines that were asked for, and what follows while the session runs, if that was asked for too."""
    logs = context.logs
    start = found.start
    if query.lines != ALL_LINES:
        start = await logs.reader.tail_start(found.stored, found.start, found.end, query.lines)
    if query.follows:
        place = FilePlace(context.session.id, found.node_id, found.stored.generation)
        pieces = logs.follow(place, start, query.interval_seconds, context.is_over)
    else:
        pieces = logs.reader.stream(found.stored, start, found.end)
    async for piece in without_codes(pieces) if query.drops_ansi else pieces:
        yield piece


def attachment(name: str) -> str:
    """A header that names the download, whatever characters a request puts into the name."""
    plain = "".join(char for char in name if char.isascii() and char.isprintable() and char not in '"\\')
    extended = "" if plain == name else f"; filename*=UTF-8''{quote(name, safe='')}"
    return f'attachment; filename="{plain}"{extended}'


async def get_archive(request: Request, context: SessionContext) -> Response:
    logs = context.logs
    session, node_id = context.session.id, request.query_params.get("node_id")
    node_ids = await logs.node_ids(session)
    if node_id is not None and node_id not in node_ids:
        return text_response(f"node {node_id} has no logs in session {session}", 404)
    missing = MissingLines()
    members = _members(context, [node_id] if node_id else node_ids, missing)
    name = "-".join([session.cluster, session.session, *([node_id] if node_id else [])])
    headers = {"Content-Disposition": attachment(f"{name}.tar.gz")}
    pieces = tar_gz(members, logs.reader, missing)
    return await streamed(request, logs.bodies, pieces, headers=headers, media_type="application/gzip")


async def _members(context: SessionContext, node_ids: list[str], missing: MissingLines) -> AsyncIterator[Member]:
    """Every file under `<node id>/`, node by node; `missing` gets a line for each pack that could not be read."""
    for node_id in node_ids:
        files = await context.logs.files(context.session.id, node_id)
        for key, cause in sorted(files.damaged.items()):
            missing.add(f"pack {key} could not be read: {cause}")
        for path, stored in sorted(files.by_path.items()):
            yield Member(f"{node_id}/{path}", stored)


NO_NODE = "Both node id and node ip are not provided. Please provide at least one of them."


async def list_logs(request: Request, context: SessionContext) -> Response:
    """Raises InvalidQuery, and Unanswerable where Ray fails on it."""
    params = request.query_params
    node_id, node_ip = params.get("node_id"), params.get("node_ip")
    to_int(params.get("timeout", "30"))
    if not node_id and not node_ip:
        raise InvalidQuery(NO_NODE)
    if not node_id:
        node_id = await node_of_ip(context, node_ip or "")
    if not node_id:
        return refused_response(f"Cannot find matching node_id for a given node ip {node_ip}", 404)
    if not await is_node(context, node_id):
        raise NotThere(f"there is no node {node_id}")
    files = await context.logs.files(context.session.id, node_id)
    # A node may have a hundred thousand files: others are answered meanwhile.
    return await asyncio.to_thread(_logs_response, files, params.get("glob", "*"))


def _logs_response(files: NodeFiles, pattern: str) -> Response:
    """Ray's answer; where packs could not be read, the message says that the list is shorter than it should be."""
    try:
        groups = grouped(matching_names(files.by_path, pattern))
    except InvalidPattern as exc:
        raise Unanswerable(str(exc)) from exc
    return dashboard_response(_gaps_message(files.damaged), {"result": groups})


def _gaps_message(damaged: dict[str, str]) -> str:
    if not damaged:
        return ""
    [(key, cause), *_] = sorted(damaged.items())
    return f"{len(damaged)} log pack(s) could not be read and their files may be missing; the first is {key}: {cause}"
