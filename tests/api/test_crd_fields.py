"""The CRDs have every field of KubeRay 1.7's, with the same type, default, enum and limits, and no other."""

from __future__ import annotations

import pytest
import yaml

from crds.field_tables import TABLES
from crds.flattening import flatten
from raykeeper.api.crd.descriptions import class_doc, field_docs
from raykeeper.api.crd.files import CRD_FOLDER
from raykeeper.api.crd.hints import fields_of
from raykeeper.api.crd.kinds import KINDS, Kind
from raykeeper.api.meta import JSON
from raykeeper.api.structs import ApiStruct

BY_NAME = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource.kind)


def committed(kind: Kind) -> JSON:
    crd: JSON = yaml.load((CRD_FOLDER / kind.file_name).read_bytes(), Loader=yaml.CSafeLoader)
    return crd


def schema_of(kind: Kind) -> JSON:
    schema: JSON = committed(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def subclasses(base: type[ApiStruct]) -> set[type[ApiStruct]]:
    return {found for child in base.__subclasses__() for found in {child, *subclasses(child)}}


@BY_NAME
def test_a_kind_has_exactly_the_fields_of_its_table(kind: Kind) -> None:
    envelope = {
        ".apiVersion": "string",
        ".kind": "string",
        ".metadata": "object",
        ".spec": "object",
        ".status": "object",
    }
    assert dict(flatten(schema_of(kind))) == envelope | TABLES[kind.resource.kind]


@pytest.mark.parametrize("struct", sorted(subclasses(ApiStruct), key=str), ids=lambda struct: struct.__name__)
def test_every_field_of_ours_says_what_it_is_for(struct: type[ApiStruct]) -> None:
    assert class_doc(struct)
    assert {field.name for field in fields_of(struct)} - field_docs(struct).keys() <= {"metadata"}


def test_the_parts_of_pods_carry_no_descriptions() -> None:
    template = schema_of(KINDS[0])["properties"]["spec"]["properties"]["headGroupSpec"]["properties"]["template"]
    assert "description" not in yaml.dump(template["properties"])
