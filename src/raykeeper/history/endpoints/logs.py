"""`/api/v0/logs`: the log files of one node, in groups."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.answers import InvalidQuery, NotThere, Unanswerable, dashboard_response, refused_response
from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.logs_resolve import is_node, node_of_ip
from raykeeper.history.logs.globs import InvalidPattern, matching_names
from raykeeper.history.logs.groups import grouped
from raykeeper.history.logs.logquery import to_int
from raykeeper.history.logs.logstore import LogStore, NodeFiles

NO_NODE = "Both node id and node ip are not provided. Please provide at least one of them."


async def list_logs(request: Request, asked: Asked, logs: LogStore) -> Response:
    """Raises InvalidQuery, and Unanswerable where Ray fails on it."""
    params = request.query_params
    node_id, node_ip = params.get("node_id"), params.get("node_ip")
    to_int(params.get("timeout", "30"))
    if not node_id and not node_ip:
        raise InvalidQuery(NO_NODE)
    if not node_id:
        node_id = await node_of_ip(asked, node_ip or "")
    if not node_id:
        return refused_response(f"Cannot find matching node_id for a given node ip {node_ip}", 404)
    if not await is_node(asked, logs, node_id):
        raise NotThere(f"there is no node {node_id}")
    return logs_response(await logs.files(asked.session.id, node_id), params.get("glob", "*"))


def logs_response(files: NodeFiles, pattern: str) -> Response:
    """Ray's answer; where packs could not be read, the message says that the list is shorter than it should be."""
    try:
        groups = grouped(matching_names(files.by_path, pattern))
    except InvalidPattern as exc:
        raise Unanswerable(str(exc)) from exc
    return dashboard_response(gaps_message(files.damaged), {"result": groups})


def gaps_message(damaged: dict[str, str]) -> str:
    if not damaged:
        return ""
    [(key, cause), *_] = sorted(damaged.items())
    return f"{len(damaged)} log pack(s) could not be read and their files may be missing; the first is {key}: {cause}"
