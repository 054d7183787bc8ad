"""The operations of the JSON API as text for its page of documentation. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from raykeeper.history.keeper.openapi import Json, openapi_document
from raykeeper.history.keeper.operation import Operation


def operations_reference(operations: Sequence[Operation[Any]]) -> str:
    """Every operation with its parameters and the members of its answer, as Markdown."""
    document = openapi_document(operations)
    schemas = document["components"]["schemas"]
    return "\n".join(_operation(path, item["get"], schemas) for path, item in document["paths"].items())


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
    yield "| member | values | meaning |\n|---|---|---|"
    for member, one in schema.get("properties", {}).items():
        yield f"| `{member}` | {_values(one)} | {one.get('description', '')} |"
    yield ""
