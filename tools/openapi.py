"""The OpenAPI documents of the API server, from its protobuf files.

Those of KubeRay's names are Swagger 2.0, with its names of operations and definitions, so that clients that were made
from them can be made again. `openapi.json` is OpenAPI 3.1 and says exactly what the server takes and answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from google.api import annotations_pb2, field_behavior_pb2
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    MethodDescriptorProto,
)

from raykeeper.apiserver.rest.documents import DOCUMENTS, MERGED, OPENAPI
from raykeeper.apiserver.services.table import SERVED
from tools.protos import SOURCES, described_protos

FOLDER = SOURCES / "raykeeper" / "apiserver" / "rest" / "openapi"
PREFIX = "raykeeper/apiserver/protos/"
LAST_KUBERAY_FIELD = 1000
ADDITIONS = "The field `view` set to `full` has the answer show fields that KubeRay does not have."

Json = dict[str, Any]
_Field = FieldDescriptorProto
_SCALARS: Mapping[int, Json] = {
    _Field.TYPE_STRING: {"type": "string"},
    _Field.TYPE_BOOL: {"type": "boolean"},
    _Field.TYPE_FLOAT: {"type": "number", "format": "float"},
    _Field.TYPE_INT32: {"type": "integer", "format": "int32"},
    _Field.TYPE_UINT32: {"type": "integer", "format": "int64"},
    _Field.TYPE_INT64: {"type": "string", "format": "int64"},
    _Field.TYPE_UINT64: {"type": "string", "format": "uint64"},
}
_WELL_KNOWN: Mapping[str, Json] = {
    ".google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    ".google.protobuf.Struct": {"type": "object"},
    ".google.protobuf.Empty": {"type": "object", "properties": {}},
}
_BOUNDS: Mapping[int, Json] = {
    _Field.TYPE_INT32: {"minimum": -(2**31), "maximum": 2**31 - 1},
    _Field.TYPE_UINT32: {"minimum": 0, "maximum": 2**32 - 1},
}
_STATUS: Json = {
    "type": "object",
    "properties": {
        "code": {"type": "integer", "format": "int32"},
        "message": {"type": "string"},
        "details": {"type": "array", "items": {"type": "object", "$ref": "#/definitions/protobufAny"}},
    },
}
_ANY: Json = {"type": "object", "properties": {"@type": {"type": "string"}}, "additionalProperties": {}}


class Protos:
    """The files, with what their comments say."""

    def __init__(self) -> None:
        described = described_protos()
        self.files = {file.name.removeprefix(PREFIX).removesuffix(".proto"): file for file in described.file}
        self.messages: dict[str, DescriptorProto] = {}
        self.enums: dict[str, EnumDescriptorProto] = {}
        self.comments: dict[str, str] = {}
        for file in self.files.values():
            self._read(file)

    def _read(self, file: FileDescriptorProto) -> None:
        places: dict[tuple[int, ...], str] = {}
        for number, message in enumerate(file.message_type):
            self._read_message(f".{file.package}.{message.name}", message, (4, number), places)
        for number, service in enumerate(file.service):
            owner = f".{file.package}.{service.name}"
            places[6, number] = owner
            places |= {(6, number, 2, place): f"{owner}.{item.name}" for place, item in enumerate(service.method)}
        for location in file.source_code_info.location:
            if (name := places.get(tuple(location.path))) and location.leading_comments:
                self.comments[name] = " ".join(location.leading_comments.split())

    def _read_message(
        self, name: str, message: DescriptorProto, place: tuple[int, ...], places: dict[tuple[int, ...], str]
    ) -> None:
        self.messages[name] = message
        places[place] = name
        for number, field in enumerate(message.field):
            places[*place, 2, number] = f"{name}.{field.name}"
        for number, inner in enumerate(message.nested_type):
            self._read_message(f"{name}.{inner.name}", inner, (*place, 3, number), places)
        for enum in message.enum_type:
            self.enums[f"{name}.{enum.name}"] = enum


@dataclass(frozen=True)
class Dialect:
    """How one kind of document writes things."""

    references: str
    is_exact: bool
    """Whether enums are told as they are sent and taken, and numbers with their bounds."""


SWAGGER = Dialect("#/definitions/", is_exact=False)
EXACT = Dialect("#/components/schemas/", is_exact=True)


class Schemas:
    """Definitions, collected as they are referred to."""

    def __init__(self, protos: Protos, dialect: Dialect) -> None:
        self._protos = protos
        self._dialect = dialect
        self.definitions: dict[str, Json] = {}

    def refer(self, type_name: str) -> Json:
        """A schema that stands for a message or an enum."""
        if type_name in _WELL_KNOWN:
            return dict(_WELL_KNOWN[type_name])
        name = _definition_name(type_name)
        if name not in self.definitions:
            self.definitions[name] = {}  # before its fields, which may lead back here
            if type_name in self._protos.enums:
                self.definitions[name] = self._enum(self._protos.enums[type_name])
            elif type_name == ".google.protobuf.Any":
                self.definitions[name] = _ANY
            else:
                self.definitions[name] = self._message(type_name)
        return {"$ref": self._dialect.references + name}

    def _enum(self, enum: EnumDescriptorProto) -> Json:
        names = [value.name for value in enum.value]
        plain: Json = {"type": "string", "enum": names, "default": names[0]}
        if not self._dialect.is_exact:
            return plain
        # Answers have numbers, also those that a newer client may know.
        return {"anyOf": [{"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}, plain]}

    def _message(self, type_name: str) -> Json:
        message, required = self._protos.messages[type_name], []
        properties = {}
        for field in message.field:
            behavior = field.options.Extensions[field_behavior_pb2.field_behavior]
            schema = self.field(type_name, field)
            if field_behavior_pb2.OUTPUT_ONLY in behavior:
                schema["readOnly"] = True
            if field_behavior_pb2.INPUT_ONLY in behavior and self._dialect.is_exact:
                schema["writeOnly"] = True
            if field_behavior_pb2.REQUIRED in behavior:
                required.append(field.json_name)
            properties[field.json_name] = schema
        found: Json = {"type": "object", "properties": properties}
        if comment := self._protos.comments.get(type_name):
            found["description"] = comment
        # Answers leave out what is empty, so an exact document demands nothing.
        return {**found, "required": required} if required and not self._dialect.is_exact else found

    def field(self, owner: str, field: FieldDescriptorProto) -> Json:
        schema = self._value(field)
        entry = self._protos.messages.get(field.type_name)
        if entry is not None and entry.options.map_entry:
            schema = {"type": "object", "additionalProperties": self._value(entry.field[1])}
        elif field.label == _Field.LABEL_REPEATED:
            is_message = "$ref" in schema and not self._dialect.is_exact
            schema = {"type": "array", "items": {"type": "object", **schema} if is_message else schema}
        if comment := self._protos.comments.get(f"{owner}.{field.name}"):
            schema["description"] = comment
        if field.options.deprecated:
            schema["deprecated"] = True
        return schema

    def _value(self, field: FieldDescriptorProto) -> Json:
        if field.type in (_Field.TYPE_MESSAGE, _Field.TYPE_ENUM):
            entry = self._protos.messages.get(field.type_name)
            return {} if entry is not None and entry.options.map_entry else self.refer(field.type_name)
        bounds = _BOUNDS.get(field.type, {}) if self._dialect.is_exact else {}
        return {**_SCALARS[field.type], **bounds}


def _definition_name(type_name: str) -> str:
    """The last two words of a name, as KubeRay's documents join them: protoCluster, VolumeVolumeType."""
    return "".join(type_name.split(".")[-2:])


@dataclass(frozen=True)
class Operation:
    """One call under its path."""

    service: str
    method: MethodDescriptorProto
    verb: str
    path: str
    body: str

    @property
    def full_name(self) -> str:
        return f".proto.{self.service}.{self.method.name}"


def operations(file: FileDescriptorProto) -> Iterator[Operation]:
    for service in file.service:
        for method in service.method:
            rule = method.options.Extensions[annotations_pb2.http]
            verb = str(rule.WhichOneof("pattern"))
            yield Operation(service.name, method, verb, getattr(rule, verb), rule.body)


def swagger(protos: Protos, names: tuple[str, ...], title: str) -> Json:
    """A document in KubeRay's form about some of the files."""
    schemas = Schemas(protos, SWAGGER)
    schemas.definitions |= {"googlerpcStatus": _STATUS, "protobufAny": _ANY}
    paths: dict[str, Json] = {}
    found = [operation for name in names for operation in operations(protos.files[name])]
    for operation in found:
        paths.setdefault(operation.path, {})[operation.verb] = _swagger_operation(protos, schemas, operation)
    if names == ("error",):
        schemas.refer(".proto.Status")
    return {
        "swagger": "2.0",
        "info": {"title": title, "version": "version not set"},
        "tags": [{"name": name} for name in dict.fromkeys(operation.service for operation in found)],
        "schemes": ["http"],
        "consumes": ["application/json"],
        "produces": ["application/json"],
        "paths": paths,
        "definitions": dict(sorted(schemas.definitions.items())),
    }


def _swagger_operation(protos: Protos, schemas: Schemas, operation: Operation) -> Json:
    parameters = []
    for place, field, schema in _parameters(protos, schemas, operation):
        description = {"description": schema.pop("description", "")}
        if place == "body":
            parameters.append(
                {"name": field.json_name, **description, "in": "body", "required": True, "schema": schema}
            )
        else:
            parameters.append(
                {"name": field.json_name, **description, "in": place, "required": place == "path", **schema}
            )
    responses = {
        "200": {"description": "A successful response.", "schema": schemas.refer(operation.method.output_type)},
        "default": {
            "description": "An unexpected error response.",
            "schema": {"$ref": f"{SWAGGER.references}googlerpcStatus"},
        },
    }
    return {
        "summary": protos.comments.get(operation.full_name, ""),
        "operationId": f"{operation.service}_{operation.method.name}",
        "responses": responses,
        **({"parameters": parameters} if parameters else {}),
        "tags": [operation.service],
    }


def _parameters(
    protos: Protos, schemas: Schemas, operation: Operation
) -> Iterator[tuple[str, FieldDescriptorProto, Json]]:
    """Where each field of a request stands, those of the path first."""
    request = operation.method.input_type
    places = {}
    for field in protos.messages[request].field:
        in_path = f"{{{field.name}}}" in operation.path
        places[field.name] = "path" if in_path else "body" if field.name == operation.body else "query"
    for wanted in ("path", "body", "query"):
        for field in protos.messages[request].field:
            if places[field.name] == wanted:
                yield wanted, field, schemas.field(request, field)


def openapi(protos: Protos) -> Json:
    """The exact document about everything that is served."""
    schemas = Schemas(protos, EXACT)
    paths: dict[str, Json] = {}
    served = {str(service.name) for service in SERVED}
    for file in protos.files.values():
        for operation in operations(file):
            if operation.service in served:
                item = _exact_operation(protos, schemas, operation)
                paths.setdefault(operation.path, {})[operation.verb] = item
    schemas.definitions["Status"] = {
        "type": "object",
        "required": ["code", "message"],
        "properties": {"code": {"type": "integer", "minimum": 1, "maximum": 16}, "message": {"type": "string"}},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Raykeeper API server", "version": version("raykeeper"), "description": ADDITIONS},
        "security": [{}, {"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.definitions.items())),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _exact_operation(protos: Protos, schemas: Schemas, operation: Operation) -> Json:
    parameters: list[Json] = [{"name": "view", "in": "query", "schema": {"type": "string", "enum": ["full"]}}]
    body: Json = {}
    for place, field, schema in _parameters(protos, schemas, operation):
        if place == "body":
            body = {"required": True, "content": {"application/json": {"schema": schema}}}
        else:
            parameters.append(_exact_parameter(place, field, schema))
    failures = {
        code: {"description": description, "content": _json_of({"$ref": f"{EXACT.references}Status"})}
        for code, description in _FAILURES.items()
    }
    answer = _json_of(schemas.refer(operation.method.output_type))
    return {
        "summary": protos.comments.get(operation.full_name, ""),
        "operationId": f"{operation.service}_{operation.method.name}",
        "tags": [operation.service],
        "parameters": parameters,
        **({"requestBody": body} if body else {}),
        "responses": {"200": {"description": "The answer.", "content": answer}, **failures},
    }


_FAILURES = {
    "400": "The request is not valid.",
    "401": "The caller is not known.",
    "403": "The caller may not do this.",
    "404": "There is no such object.",
    "409": "There is such an object already.",
    "413": "The body is too large.",
    "429": "Too many requests at once.",
    "500": "Kubernetes or Ray refused; the message says why.",
    "501": "The path has no such method.",
    "503": "Kubernetes or Ray cannot be reached.",
    "504": "It took too long.",
}


def _exact_parameter(place: str, field: FieldDescriptorProto, schema: Json) -> Json:
    description = schema.pop("description", "")
    if field.type == _Field.TYPE_INT64:  # a query has no types: it is written as any number
        schema = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}
    name = field.name if place == "path" else field.json_name
    return {"name": name, "in": place, "required": place == "path", "description": description, "schema": schema}


def _json_of(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}


def openapi_files() -> Iterator[tuple[Path, str]]:
    """Every document with what it should contain."""
    protos = Protos()
    for name in DOCUMENTS:
        if name == MERGED:
            document = swagger(protos, tuple(one for one in DOCUMENTS if one not in (MERGED, "error")), "KubeRay API")
        else:
            document = swagger(protos, (name,), f"{name}.proto")
        yield FOLDER / f"{name}.swagger.json", _text(document)
    yield FOLDER / OPENAPI, _text(openapi(protos))


def _text(document: Json) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
