"""`/api/v0/logs/archive`: all log files of a session, or of one node, in one file. Ours: Ray has none."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from raykeeper.history.answers import text_response
from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.logs_file import attachment, started
from raykeeper.history.logs.archive import Member, tar_gz
from raykeeper.history.logs.logstore import LogStore


async def get_archive(request: Request, asked: Asked, logs: LogStore) -> Response:
    session, node_id = asked.session.id, request.query_params.get("node_id")
    node_ids = await logs.node_ids(session)
    if node_id is not None and node_id not in node_ids:
        return text_response(f"node {node_id} has no logs in session {session}", 404)
    members, missing = await _members(asked, logs, [node_id] if node_id else node_ids)
    name = "-".join([session.cluster, session.session, *([node_id] if node_id else [])])
    pieces = await started(tar_gz(members, logs.reader, missing))
    headers = {"Content-Disposition": attachment(f"{name}.tar.gz")}
    return StreamingResponse(pieces, headers=headers, media_type="application/gzip")


async def _members(asked: Asked, logs: LogStore, node_ids: list[str]) -> tuple[list[Member], list[str]]:
    """Every file under `<node id>/`, and a line for each pack that could not be read."""
    members, missing = list[Member](), list[str]()
    for node_id in node_ids:
        files = await logs.files(asked.session.id, node_id)
        members += [Member(f"{node_id}/{path}", stored) for path, stored in sorted(files.by_path.items())]
        missing += [f"pack {key} could not be read: {cause}" for key, cause in sorted(files.damaged.items())]
    return members, missing
