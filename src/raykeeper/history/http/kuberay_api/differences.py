"""Where KubeRay's routes differ from Ray's: parameters it reads otherwise, names, headers and statuses it writes
otherwise.

Each is a variant around the endpoint that answers below `/s/…` too.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.entities.ray_json import camel_keys
from raykeeper.history.errors import InvalidQuery, LogRefused, LogUnknown, NotThere, Unanswerable
from raykeeper.history.http.errors import ErrorFormat, failure_response
from raykeeper.history.http.ray_api.actor_pages import read_actors
from raykeeper.history.http.ray_api.node_pages import is_node_known
from raykeeper.history.http.ray_api.polled_passthrough import ROUTE as POLLED_ROUTE
from raykeeper.history.http.ray_api.routes import Answer, Endpoint
from raykeeper.history.http.responses import dashboard_response, text_response, trouble_response
from raykeeper.history.logs.names import fixed_folder, grouped
from raykeeper.history.logs.query import to_int
from raykeeper.history.query.context import SessionContext
from raykeeper.layout.keys import SessionId

_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (LogRefused, 400),
    (LogUnknown, 404),
    (NotThere, 404),
    (Unanswerable, 400),
    (InvalidQuery, 400),
)
"""For what Ray answers with 500 or with its envelope; the first that fits."""


def _kuberay_failure(error: Exception) -> Response | None:
    """The answer to an error that is not our bug; None for one that is."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), None)
    return failure_response(error) if status is None else text_response(str(error), status)


KUBERAY_ERRORS = ErrorFormat(_kuberay_failure, trouble_response)


NO_STREAM = "Log streaming only available for live clusters"
NOT_SERVED = 501

Variant = Callable[[Request, SessionContext, Answer], Awaitable[Response]]
IsLive = Callable[[SessionId], Awaitable[bool]]
"""Whether a session that is open runs and its cluster is there."""

_COLUMNS = {"task_type": "type", "task_name": "name"}
"""What KubeRay calls the columns of tasks that can be filtered."""
_FILTERS = ("filter_keys", "filter_predicates", "filter_values")
_QUOTED_NAME = re.compile(r'filename="([\w.!#$&+^`|~-]+)"')
_VIEWS = ("summary", "hostnamelist")


def kuberay_endpoints(endpoints: Iterable[Endpoint], is_live: IsLive) -> Iterable[Endpoint]:
    """The same endpoints as KubeRay answers them."""
    variants = {**_VARIANTS, "/api/v0/logs/{media_type}": _log_variant(is_live)}
    for endpoint in endpoints:
        variant = variants.get(endpoint.path)
        yield endpoint if variant is None else replace(endpoint, answer=_varied(variant, endpoint.answer))


def _varied(variant: Variant, answer: Answer) -> Answer:
    return lambda request, context: variant(request, context, answer)


async def _list_tasks(request: Request, context: SessionContext, answer: Answer) -> Response:
    """Ray ignores a filter without a predicate; KubeRay refuses it, and has names of its own for two columns."""
    params = request.query_params
    keys, predicates, values = (params.getlist(name) for name in _FILTERS)
    if not len(keys) == len(predicates) == len(values):
        raise InvalidQuery(f"{len(keys)} filter_keys, {len(predicates)} filter_predicates, {len(values)} filter_values")
    renamed = [
        (name, _COLUMNS.get(text, text) if name == "filter_keys" else text) for name, text in params.multi_items()
    ]
    return await answer(_with_query(request, renamed), context)


async def _list_nodes(request: Request, context: SessionContext, answer: Answer) -> Response:
    view = request.query_params.get("view") or "summary"
    if view.lower() not in _VIEWS:
        raise InvalidQuery(f"view {view} is unknown: use summary or hostNameList")
    return await answer(_with_query(request, [("view", view)]), context)


async def _get_node(request: Request, context: SessionContext, answer: Answer) -> Response:
    node_id = request.path_params["node_id"]
    if not await is_node_known(context, node_id):
        raise NotThere(f"there is no node {node_id}")
    return await answer(request, context)


async def _get_actor(request: Request, context: SessionContext, _: Answer) -> Response:
    wanted = request.path_params["actor_id"]
    actor = (await read_actors(context, "actor_id", [wanted])).get(wanted)
    if actor is None:
        response = dashboard_response("Actor not found.", {"detail": None}, 404)
        response.status_code = 200  # an answer whose `result` is false
        return response
    return dashboard_response("Actor fetched.", {"detail": camel_keys(actor)})


async def _list_logs(request: Request, context: SessionContext, answer: Answer) -> Response:
    """Names are relative to the folder that the pattern names, and files are grouped by those."""
    response = await answer(request, context)
    folder = fixed_folder(request.query_params.get("glob", "*"))
    if response.status_code != 200 or not folder:
        return response
    told = msgspec.json.decode(bytes(response.body))
    names = [name.removeprefix(folder) for group in told["data"]["result"].values() for name in group]
    return dashboard_response(told["msg"], {"result": grouped(sorted(name for name in names if name))})


def _log_variant(is_live: IsLive) -> Variant:
    async def get_log(request: Request, context: SessionContext, answer: Answer) -> Response:
        """An attempt of a file is its rotation of that number. A dead session has no streams."""
        if request.path_params["media_type"] == "stream" and not await is_live(context.session.id):
            return text_response(NO_STREAM, NOT_SERVED)
        params = dict(request.query_params)
        attempt = to_int(params.get("attempt_number", "0"))
        if params.get("filename") and attempt > 0:
            params["filename"] += f".{attempt}"
        response = await answer(_with_query(request, params.items()), context)
        # Its clients look for the bare name, which a header may have too.
        disposition = response.headers.get("Content-Disposition", "")
        response.headers["Content-Disposition"] = _QUOTED_NAME.sub(r"filename=\1", disposition)
        return response

    return get_log


async def _get_health(request: Request, context: SessionContext, answer: Answer) -> Response:
    """Of what is not set up, KubeRay says that it does not serve it."""
    response = await answer(request, context)
    if response.status_code != 200:
        response.status_code = NOT_SERVED
    return response


async def _get_kept(request: Request, context: SessionContext, answer: Answer) -> Response:
    """A slash at the end makes no difference."""
    response = await answer(request, context)
    if response.status_code != 404:
        return response
    path: bytes = request.scope["raw_path"]
    either = path[:-1] if path.endswith(b"/") else path + b"/"
    return await answer(Request({**request.scope, "raw_path": either}, request.receive), context)


def _with_query(request: Request, params: Iterable[tuple[str, str]]) -> Request:
    return Request({**request.scope, "query_string": urlencode(list(params)).encode()}, request.receive)


_VARIANTS: Mapping[str, Variant] = {
    "/api/v0/tasks": _list_tasks,
    "/api/v0/tasks/summarize": _list_tasks,
    "/nodes": _list_nodes,
    "/nodes/{node_id}": _get_node,
    "/logical/actors/{actor_id}": _get_actor,
    "/api/v0/logs": _list_logs,
    "/api/grafana_health": _get_health,
    "/api/prometheus_health": _get_health,
    POLLED_ROUTE: _get_kept,
}
