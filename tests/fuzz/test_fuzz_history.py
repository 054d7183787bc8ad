"""Whatever lies in the bucket or comes with a request, the history server reads it or says what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import duckdb
import msgspec
import pytest
from starlette.datastructures import QueryParams

from fuzz.fuzzing import walk
from raykeeper.history.errors import InvalidQuery, Unanswerable
from raykeeper.history.http.ray_api.state_query import parse_state_query, to_condition, typed_filters
from raykeeper.history.http.ray_api.tasks import COLUMNS
from raykeeper.history.ingest.manifests import parse_manifest
from raykeeper.history.logs.names import PATTERN_LIMIT, InvalidPattern, matching_names
from raykeeper.history.prices import NodeFacts, NodeHoursUsed, parse_price_list
from raykeeper.layout.compacted import DamagedCompaction, decode_compacted
from raykeeper.layout.keys import SessionId
from raykeeper.layout.logindexes import DamagedLogIndexes, decode_log_indexes
from raykeeper.layout.polled import DamagedAnswer, decode_polled
from raykeeper.masking import masked, masked_text
from raykeeper.settings.yaml_file import YamlFileError

SESSION = SessionId("local", "demo", "session_1")
PATHS = [f"folder-{number % 7}/worker-{number}.out" for number in range(300)] + ["raylet.out", "a/b/c/d.log"]


def test_any_manifest_is_of_its_session_or_passed_over() -> None:
    def read(data: bytes) -> None:
        manifest = parse_manifest(SESSION, 1, data)
        if manifest is not None:
            assert all(file.key.startswith(f"{SESSION.prefix}tables/") for file in manifest.files())
            assert ".." not in "".join(file.key for file in manifest.files())

    words = [
        b'"key":',
        b'"../',
        b"null",
        b"-1",
        b"1e999",
        b'{"tables":{',
        b'"facts":{"record":',
        b"9999-12-31T23:59:59Z",
    ]
    assert walk("manifests", read, words=words) > 3


def test_any_glob_matches_quickly_or_is_refused() -> None:
    def match(data: bytes) -> None:
        pattern = data.decode(errors="replace")[: PATTERN_LIMIT + 10]
        try:
            names = matching_names(PATHS, pattern)
        except InvalidPattern:
            return
        assert names == sorted(names)

    assert walk("globs", match, words=[b"**", b"/", b"*", b"?", b"[!", b"]", b"..", b"**/", b"[a-z]"]) > 3


def test_any_filter_is_a_condition_or_refused() -> None:
    def parse(data: bytes) -> None:
        try:
            query = parse_state_query(QueryParams(data.decode(errors="replace")))
            condition = to_condition(typed_filters(query.filters, COLUMNS), COLUMNS)
        except (InvalidQuery, Unanswerable):
            return
        for item in query.filters:
            assert len(item.value) < 4 or item.value not in condition.sql, "values are bound"

    words = [
        b"filter_keys=",
        b"filter_predicates=%3D",
        b"filter_values=",
        b"&",
        b"limit=",
        quote("' OR 1=1 --").encode(),
    ]
    assert walk("filters", parse, words=words) > 3


def test_any_table_file_is_read_or_refused(tmp_path: Path) -> None:
    table = tmp_path / "table.parquet"
    with duckdb.connect(config={"memory_limit": "256MB", "threads": 1}) as connection:

        def read(data: bytes) -> None:
            table.write_bytes(data)
            try:
                connection.execute("SELECT * FROM read_parquet($file) LIMIT 100", {"file": str(table)}).fetchall()
            except (duckdb.Error, UnicodeDecodeError):
                return

        assert walk("tables", read) > 1


@pytest.mark.parametrize(
    ("name", "decode", "damage"),
    [
        ("polled", decode_polled, DamagedAnswer),
        ("log-indexes", decode_log_indexes, DamagedLogIndexes),
        ("compacted", decode_compacted, DamagedCompaction),
    ],
)
def test_any_copy_or_answer_is_read_or_damaged(name: str, decode: object, damage: type[Exception]) -> None:
    def read(data: bytes) -> None:
        assert callable(decode)
        try:
            decode(data)
        except damage:
            return

    assert walk(name, read) > 3


def test_any_price_list_is_taken_or_refused() -> None:
    def read(data: bytes) -> None:
        try:
            prices = parse_price_list(data)
        except YamlFileError:
            return
        price = prices.of_node(NodeFacts("team-a", "c", {"zone": "a"}))
        cost = price.cost(NodeHoursUsed(1, 1, 1, {"H100": 1})) if price else {}
        assert all(0 <= amount < 1e13 for amount in cost.values())

    words = [b"- ", b": ", b"&a ", b"*a", b"!!python/object:os.system ", b"<<: ", b".inf", b"0x10", b"{", b"}", b"\t"]
    assert walk("price-lists", read, words=words) > 10


def test_any_answer_is_masked() -> None:
    def mask(data: bytes) -> None:
        text = data.decode(errors="replace")
        assert masked_text(masked_text(text)) == masked_text(text)
        try:
            raw = msgspec.json.decode(data, type=msgspec.Raw)  # as bodies of polled answers are read
            data.decode()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raw = msgspec.Raw(b"null")
        shown = bytes(masked({"raw": raw, "text": text, "password": "hunter2"}).json)
        assert b"hunter2" not in shown or "hunter2" in text
        msgspec.json.decode(shown)

    words = [
        b'"env_vars":',
        b"token=",
        b"--password ",
        b"://u:p@",
        b"-----BEGIN PRIVATE KEY-----",
        b"[[[[",
        b"\\u0000",
        b'"--db-pass",',
        b'"api_keys":[',
        b'{"name":"pwd","value":',
        b"LTAI",
        b"tokens: 5",
    ]
    assert walk("masking", mask, words=words) > 3


SECRET_NAMES = (
    *("password", "DB_PASS", "dbPass", "Pwd", "passwords", "apiKey", "api_keys", "aws_secret_access_key", "HF_TOKEN"),
    *("tokens", "client-secret", "secrets", "credentials", "signature", "passphrase", "Authorization"),
)
HIDDEN = "xK7-hunter2-qZ9"


def test_a_secret_under_a_secrets_name_is_masked_in_any_shape_and_any_wrapping() -> None:
    """The input says how: each byte wraps the secret once more, below the name and then above it."""

    def hide(data: bytes) -> None:
        name = SECRET_NAMES[data[0] % len(SECRET_NAMES)] if data else "password"
        value: object = HIDDEN
        for byte in data[1:4]:
            value = ([value], ["first", value], {"value": value}, {"user": "ray", "inner": [value]}, value)[byte % 5]
        value = _named(name, value, data[4] if len(data) > 4 else 0)
        for byte in data[5:9]:
            value = _wrapped(value, byte)
        shown = bytes(masked({"outer": value}).json)
        assert HIDDEN.encode() not in shown, shown
        msgspec.json.decode(shown)

    assert walk("masked-shapes", hide) > 100


def _named(name: str, value: object, how: int) -> object:
    return [
        {name: value},
        {"name": name, "value": value},
        {"key": name, "value": value, "other": 1},
        ["run", f"--{name}", HIDDEN] if name != "Authorization" else {name: value},
        {"argv": [{name: value}, 3], name: HIDDEN},
    ][how % 5]


def _wrapped(value: object, how: int) -> object:
    text = json.dumps(value, default=lambda raw: json.loads(bytes(raw)))
    return [[value], {"inner": value, "n": 1}, {"t": text}, msgspec.Raw(text.encode()), f"\n {text} ", (value,)][
        how % 6
    ]
