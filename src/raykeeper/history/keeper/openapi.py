"""The OpenAPI document of the JSON API, made from its table of operations and the types in it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from raykeeper.history.keeper.descriptions import described
from raykeeper.history.keeper.operation import PREFIX, Operation
from raykeeper.history.keeper.problems import WORDS, Problem

API_VERSION = "1.0"
"""The second number grows with every operation, parameter or member that is added; the first one is in the path."""
_IN_BRACES = re.compile(r"{(\w+)}")
_REFERENCE = "#/components/schemas/{name}"
_JSON = "application/json"
_TEXT_STATUSES = (401, 403)  # said before a request reaches the API, in the words of Ray's own dashboard
_ALWAYS = (400, 401, 403, 500, 502, 503)
_OF_PATHS = {
    "namespace": "Of the cluster; `local` outside Kubernetes.",
    "cluster": "Name of the RayCluster.",
    "session": "Ray's name of the session, or `latest` for the one that started last.",
    "job": "A job id, or the submission id.",
}
Json = dict[str, Any]


def openapi_document(operations: Sequence[Operation[Any]]) -> Json:
    """The whole document, in OpenAPI 3.1."""
    types = [Problem, *(operation.answer for operation in operations), *(operation.query for operation in operations)]
    schemas, plain = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    components = described(plain, types)
    refused, answers = schemas[0], schemas[1 : 1 + len(operations)]
    queries = {operation.query.__name__ for operation in operations}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Raykeeper history",
            "version": API_VERSION,
            "description": "What became of Ray clusters: sessions, jobs, and why they failed.",
        },
        "paths": {
            PREFIX + operation.path: {"get": _described(operation, answer, refused, components)}
            for operation, answer in zip(operations, answers, strict=True)
        },
        "components": {"schemas": {name: schema for name, schema in components.items() if name not in queries}},
    }


def _described(operation: Operation[Any], answer: Json, refused: Json, components: Json) -> Json:
    return {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [*_path_parameters(operation.path), *_query_parameters(components[operation.query.__name__])],
        "responses": {"200": _content("The answer.", answer), **_refusals(operation.path, refused)},
    }


def _path_parameters(path: str) -> Iterable[Json]:
    for name in _IN_BRACES.findall(path):
        schema = {"type": "string", "minLength": 1}
        yield {"name": name, "in": "path", "required": True, "description": _OF_PATHS[name], "schema": schema}


def _query_parameters(schema: Json) -> Iterable[Json]:
    """One parameter for each field of the query's struct."""
    required = schema.get("required", [])
    for name, given in schema.get("properties", {}).items():
        told = _without_null(given)
        shape = {key: value for key, value in told.items() if key != "description" and value is not None}
        text = told.get("description", "")
        yield {"name": name, "in": "query", "required": name in required, "description": text, "schema": shape}


def _without_null(schema: Json) -> Json:
    """What a URL can say: a parameter is given or left out."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**rest, **kinds[0]} if len(kinds) == 1 else schema


def _refusals(path: str, refused: Json) -> Json:
    statuses = sorted({*_ALWAYS, 404} if "{" in path else _ALWAYS)
    return {str(status): _refusal(status, refused) for status in statuses}


def _refusal(status: int, refused: Json) -> Json:
    if status in _TEXT_STATUSES:
        return {"description": WORDS[status], "content": {"text/plain": {"schema": {"type": "string"}}}}
    return _content(WORDS[status], refused)


def _content(description: str, schema: Json) -> Json:
    return {"description": description, "content": {_JSON: {"schema": schema}}}
