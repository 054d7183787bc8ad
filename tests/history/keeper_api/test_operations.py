"""The JSON API as a table: each row has a route and is described; what it does not know is refused in one shape."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec
import pytest

from raykeeper.history.errors import InvalidQuery
from raykeeper.history.http.keeper_api.openapi import openapi_document, operations_reference
from raykeeper.history.http.keeper_api.operation import PREFIX, Call, Operation, Query, parse_query
from raykeeper.history.http.keeper_api.serving import OPERATIONS
from support.asking import ask
from support.history_scene import Scene, a_scene, put_session, session_url


class Asked(Query, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=100, description="Rows of a page.")] = 50
    word: str = ""
    since: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class Told(msgspec.Struct):
    names: list[str]


async def tell(call: Call[Asked]) -> Told:
    return Told([call.names["namespace"]])


TELLING = Operation("tell_names", "/names/{namespace}", "Names", Asked, Told, tell)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return a_scene(tmp_path)


def test_parameters_become_a_typed_query() -> None:
    assert parse_query([("limit", "7"), ("word", "8")], Asked) == Asked(limit=7, word="8")
    assert parse_query([], Asked) == Asked(limit=50)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([("limit", "x")], "parameter 'limit': expected `int`, got `str`"),
        ([("limit", "0")], "parameter 'limit': expected `int` >= 1"),
        ([("limit", "1"), ("limit", "2")], "parameter 'limit' is given 2 times"),
        ([("since", "null")], "parameter 'since': 'null' is no value of it"),
        ([("since", "0.5")], "parameter 'since': '0.5' is no value of it"),
        ([("since", "1763240000")], "parameter 'since': '1763240000' is no value of it"),
        ([("limti", "1")], "there is no parameter 'limti'; there are: limit, since, word"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_the_parameters_name(given: list[tuple[str, str]], told: str) -> None:
    with pytest.raises(InvalidQuery) as refused:
        parse_query(given, Asked)
    assert str(refused.value) == told


def test_a_row_is_described_with_its_parameters_answers_and_refusals() -> None:
    described = openapi_document([TELLING])
    operation = described["paths"][f"{PREFIX}/names/{{namespace}}"]["get"]
    assert [parameter["name"] for parameter in operation["parameters"]] == ["namespace", "limit", "word", "since"]
    limit, word, since = operation["parameters"][1:]
    assert limit["schema"] == {"type": "integer", "minimum": 1, "maximum": 100, "default": 50}
    assert (limit["description"], limit["required"], word["required"]) == ("Rows of a page.", False, False)
    assert since["schema"] == {"type": "string", "format": "date-time"}, "a URL cannot say null"
    told = operation["responses"]["200"]["content"]["application/json"]["schema"]
    assert told == {"$ref": "#/components/schemas/Told"}
    assert set(described["components"]["schemas"]) == {"Told", "Problem"}
    assert {"400", "404", "503"} <= set(operation["responses"])


def test_operations_have_names_and_paths_of_their_own() -> None:
    assert len({operation.name for operation in OPERATIONS}) == len(OPERATIONS)
    assert len({operation.path for operation in OPERATIONS}) == len(OPERATIONS)


async def test_the_document_describes_the_whole_table(scene: Scene) -> None:
    document = (await ask(scene.app, f"{PREFIX}/openapi.json")).body
    assert document["openapi"] == "3.1.0"
    assert set(document["paths"]) == {PREFIX + operation.path for operation in OPERATIONS}


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        ("/sessions/team-a/train/nope/report", 404, "there is no session team-a/train/nope"),
        ("/nope", 404, f"there is no operation {PREFIX}/nope; see {PREFIX}/openapi.json"),
        ("/sessions/team-a/train/latest/report?x=1", 400, "there is no parameter 'x'; there are: none"),
    ],
)
async def test_every_refusal_has_one_shape(scene: Scene, path: str, status: int, told: str) -> None:
    await put_session(scene.store)
    answered = await ask(scene.app, PREFIX + path)
    assert (answered.status, answered.body) == (status, {"error": told})


async def test_other_methods_are_refused_in_the_same_shape(scene: Scene) -> None:
    answered = await ask(scene.app, f"{PREFIX}/openapi.json", method="DELETE")
    assert (answered.status, answered.body) == (405, {"error": "operations answer GET and HEAD alone"})
    assert answered.headers["allow"] == "GET, HEAD"


async def test_an_operation_about_a_session_is_answered_below_its_prefix_too(scene: Scene) -> None:
    await put_session(scene.store)
    below = await ask(scene.app, f"{session_url()}{PREFIX}/report")
    latest = await ask(scene.app, f"{PREFIX}/sessions/team-a/train/latest/report")
    assert below.status == latest.status == 200
    assert below.content == latest.content
    assert latest.headers["x-raykeeper-as-of"] == "2026-11-15T20:00:00+00:00"


class Written(msgspec.Struct):
    size: int
    """In bytes, as the store counts them."""
    parts: tuple[Told, ...] = ()


def test_what_the_code_says_under_a_field_describes_it() -> None:
    listing = Operation("list_written", "/written", "Written", Asked, Written, tell)
    schemas = openapi_document([listing])["components"]["schemas"]
    assert schemas["Written"]["properties"]["size"]["description"] == "In bytes, as the store counts them."
    assert set(schemas) == {"Told", "Written", "Problem"}


def test_a_row_becomes_a_section_of_the_documentation() -> None:
    section = operations_reference([TELLING])
    assert "## `tell_names`: names" in section
    assert f"`GET {PREFIX}/names/{{namespace}}`" in section
    assert "| `limit` | integer 1 to 100 | `50` | Rows of a page. |" in section
    assert "| `names` | list of string |  |" in section


def test_every_parameter_of_the_api_says_what_it_means() -> None:
    document = openapi_document(OPERATIONS)
    parameters = [one for path in document["paths"].values() for one in path["get"]["parameters"]]
    assert [one["name"] for one in parameters if not one["description"]] == []
