"""The operations of the JSON API as an OpenAPI document, and as text for its page of documentation. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import inspect

from raykeeper.api.crd.descriptions import field_docs
from raykeeper.history.http.keeper_api.operation import PREFIX, WORDS, Operation, Problem

Json = dict[str, Any]


def described(components: Json, types: Iterable[Any]) -> Json:
    """The schemas of these types, with a description wherever the code has one and the schema has not."""
    classes = {item.__name__: item for item in _classes(types)}
    return {
        name: _described_type(schema, classes[name]) if name in classes else schema
        for name, schema in components.items()
    }


def _described_type(schema: Json, item: type[Any]) -> Json:
    documented = field_docs(item)
    members = {
        name: {"description": documented[name], **member} if name in documented else member
        for name, member in schema.get("properties", {}).items()
    }
    return {**schema, "properties": members} if members else schema


def _classes(types: Iterable[Any]) -> set[type[Any]]:
    """Every struct and dataclass that values of these types are made of."""
    found: set[type[Any]] = set()
    waiting = list(inspect.multi_type_info(types))
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, inspect.StructType | inspect.DataclassType):
            if kind.cls in found:
                continue
            found.add(kind.cls)
        waiting += _inside(kind)
    return found


def _inside(kind: inspect.Type) -> Iterator[inspect.Type]:
    """The types that a type is made of."""
    for field in msgspec.structs.fields(kind):
        value = getattr(kind, field.name)
        parts = value if isinstance(value, tuple) else (value,)
        for part in parts:
            if isinstance(part, inspect.Type):
                yield part
            elif isinstance(part, inspect.Field):
                yield part.type


API_VERSION = "1.1"
"""The second number grows with every operation, parameter or member that is added; the first one is in the path."""
_IN_BRACES = re.compile(r"{(\w+)}")
_REFERENCE = "#/components/schemas/{name}"
_JSON = "application/json"
_TEXT_STATUSES = (401, 403)  # said before a request reaches the API, in the words of Ray's own dashboard
_ALWAYS = (400, 401, 403, 500, 502, 503)
_OF_PATHS = {
    "fingerprint": "Of a kind of failure, as lists and reports name it.",
    "namespace": "Of the cluster; `local` outside Kubernetes.",
    "cluster": "Name of the RayCluster.",
    "session": "Ray's name of the session, or `latest` for the one that started last.",
    "job": "A job id, the submission id, or the name of its RayJob.",
    "rayjob": "Name of the RayJob.",
    "kind": "`raycluster`, `rayjob`, `rayservice` or `raycronjob`.",
    "name": "Name of the object.",
    "node": "Ray's id of the node.",
    "task": "A task id, in hex.",
}


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


def operations_reference(operations: Sequence[Operation[Any]]) -> str:
    """Every operation with its parameters and the members of its answer, as Markdown."""
    document = openapi_document(operations)
    schemas = document["components"]["schemas"]
    told = [_operation(path, item["get"], schemas) for path, item in document["paths"].items()]
    answers = {operation.answer.__name__ for operation in operations}
    return "\n".join([*told, *_objects({name: one for name, one in schemas.items() if name not in answers})])


def _objects(schemas: Json) -> Iterator[str]:
    """What answers are made of: objects with their members, words with their meaning."""
    yield "## Objects\n"
    for name, schema in sorted(schemas.items()):
        yield f"### `{name}`\n"
        if "enum" in schema:
            yield f"{schema.get('description', '')} One of {_values(schema)}.\n".lstrip()
        else:
            yield "\n".join(_table_of_members(schema))


def _operation(path: str, operation: Json, schemas: Json) -> str:
    answer = operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    lines = [
        f"## `{operation['operationId']}`: {operation['summary'].lower()[:1]}{operation['summary'][1:]}\n",
        f"`GET {path}`\n",
    ]
    lines += _parameters([one for one in operation["parameters"] if one["in"] == "query"])
    lines += _members(answer, schemas[answer])
    return "\n".join(lines)


def _parameters(parameters: list[Json]) -> Iterator[str]:
    if not parameters:
        return
    yield "| parameter | values | default | meaning |\n|---|---|---|---|"
    for one in parameters:
        default = one["schema"].get("default", "")
        required = "required" if one["required"] else f"`{default}`" if default != "" else ""
        yield f"| `{one['name']}` | {_values(one['schema'])} | {required} | {one['description']} |"
    yield ""


def _values(schema: Json) -> str:
    """What a value may be, in a few words."""
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    if "anyOf" in schema:
        return " or ".join(map(_values, schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {_values(schema.get('items') or {})}".rstrip()
    kind = "time" if schema.get("format") == "date-time" else str(schema.get("type", ""))
    bounds = (schema.get("minimum"), schema.get("maximum"))
    return f"{kind} {bounds[0]} to {bounds[1]}" if None not in bounds else kind


def _members(name: str, schema: Json) -> Iterator[str]:
    yield f"Answers `{name}`: {schema.get('description', '')}\n"
    yield from _table_of_members(schema)


def _table_of_members(schema: Json) -> Iterator[str]:
    yield "| member | values | meaning |\n|---|---|---|"
    for member, one in schema.get("properties", {}).items():
        said = " ".join(str(one.get("description", "")).split()).replace("|", "\\|")
        yield f"| `{member}` | {_values(one)} | {said} |"
    yield ""
