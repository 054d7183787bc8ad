"""Failures that differ in ids, numbers, paths, addresses or quoted values alone are the same; others are not."""

from __future__ import annotations

import string
from uuid import UUID

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykeeper.history.report.fingerprint import (
    ARGUMENT_MARK,
    Wrapping,
    digest,
    fingerprint,
    fingerprint_of,
    headline,
    innermost_function,
    title_of,
)
from raykeeper.history.report.sql import DIGEST, WRAPPING

KIND = "TASK_EXECUTION_EXCEPTION"

numbers = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False, width=32)).map(str)
hexes = st.binary(min_size=4, max_size=28).map(bytes.hex)
names = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=12)
paths = st.lists(names, min_size=1, max_size=5).map(lambda parts: "/" + "/".join(parts))
addresses = st.tuples(st.ip_addresses(v=4), st.integers(1, 65535)).map(lambda pair: f"{pair[0]}:{pair[1]}")
uuids = st.uuids().map(UUID.__str__)
quoted = st.text(string.ascii_letters + string.digits + " -_.", max_size=20).map(repr)
exceptions = st.sampled_from(["ValueError", "KeyError", "torch.cuda.OutOfMemoryError", "my_lib.errors.TooLate"])
words = st.text(string.ascii_letters.translate(str.maketrans("", "", "abcdefABCDEF")), min_size=1, max_size=12)

values = st.fixed_dictionaries(
    {"number": numbers, "id": hexes, "path": paths, "address": addresses, "uuid": uuids, "value": quoted}
)


def raised(exception: str, text: str, *, pid: int = 7, line: int = 3, function: str = "load") -> str:
    """As Ray writes a user's exception."""
    return (
        f"User exception:\n\x1b[36mray::{function}()\x1b[39m (pid={pid}, ip=10.0.0.{pid % 250})\n"
        f'  File "/tmp/ray/session_{pid}/main.py", line {line}, in {function}\n    raise oops({line})\n'
        f"          ^^^^^^^^^^^\n{exception}: {text}"
    )


def told(found: dict[str, str]) -> str:
    return (
        f"step {found['number']} of {found['id']} in {found['path']} at {found['address']} "
        f"({found['uuid']}) got {found['value']}"
    )


@given(exceptions, values, values, st.integers(1, 99999), st.integers(1, 99999))
def test_the_same_error_with_other_values_is_the_same(
    exception: str, one: dict[str, str], other: dict[str, str], pid: int, line: int
) -> None:
    first = fingerprint(KIND, raised(exception, told(one)))
    assert first == fingerprint(KIND, raised(exception, told(other), pid=pid, line=line))
    assert exception in first.title


@given(st.lists(words, min_size=1, max_size=6), st.lists(words, min_size=1, max_size=6))
def test_other_words_are_another_error(one: list[str], other: list[str]) -> None:
    titles = " ".join(one), " ".join(other)
    same = fingerprint(KIND, raised("ValueError", titles[0])) == fingerprint(KIND, raised("ValueError", titles[1]))
    assert same is (titles[0] == titles[1])


def test_another_exception_or_error_type_is_another_error() -> None:
    ids = {fingerprint(KIND, raised(name, "boom")).id for name in ("ValueError", "TypeError", "lib.ValueError")}
    assert len(ids) == 3
    assert fingerprint("WORKER_DIED", "boom").id != fingerprint("ACTOR_DIED", "boom").id


def test_an_error_that_was_passed_on_is_not_the_one_it_came_from() -> None:
    own = raised("ValueError", "boom")
    passed_on = f"ray::use() (pid=1)\n  {ARGUMENT_MARK}:\nray.exceptions.RayTaskError: {own}"
    assert title_of(passed_on) == title_of(own) == "ValueError: boom"
    assert fingerprint(KIND, passed_on).id != fingerprint(KIND, own).id
    assert innermost_function(passed_on) == "load"


MESSAGES = [
    "",
    raised("ValueError", "boom 12 ünïcode ✓ 0xdeadbeef 1e-5"),
    raised("ValueError", "fd061afc-f7a8-44c4-a579-10e768803efa _ab12cd34ef56 x12345678"),
    f"ray::use() (pid=1)\n  {ARGUMENT_MARK}:\nray.exceptions.RayTaskError: x",
    "ray.exceptions.RayTaskError(ValueError): nested" + "ä1" * 2000,
    "1.5e-05 12e5abcd 0x1F 7e+3e-4 1a2b3c4",
    "0b2d767e4b1f2d3bd55bbe371ee51cacc02d6202d0653cee8d8726b2 died " * 60,
]


@pytest.mark.parametrize("message", MESSAGES)
def test_the_database_digests_as_python_does(message: str) -> None:
    with duckdb.connect() as connection:
        [row] = connection.execute(
            f"SELECT {DIGEST}, {WRAPPING} FROM (SELECT $message AS message)",
            {"message": message},
        ).fetchall()
    assert row[0] == digest(message)
    assert fingerprint_of(KIND, Wrapping(row[1]), row[0]) == fingerprint(KIND, message)


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("RpcError: RPC error: Socket closed rpc_code: 14", "RpcError: RPC error: Socket closed rpc_code: #"),
        ("KeyError: 'user-17'", "KeyError: '...'"),
        ("no such file: s3://bucket/a/b.csv", "no such file: <url>"),
        ("cannot open /data/x/part-3.parquet", "cannot open <path>"),
        ("it isn't there and won't come", "it isn't there and won't come"),
        ("used 12.18GB of 33.28GB", "used #GB of #GB"),
        ("   \n", ""),
    ],
)
def test_titles_are_read_by_people(message: str, title: str) -> None:
    assert title_of(digest(message)) == title


def test_the_headline_of_a_chain_of_exceptions_is_the_last_one() -> None:
    chain = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nKeyError: 1\n\n'
        "During handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n"
        '  File "b.py", line 2, in h\n    raise X\nlib.X: second\nwith more lines'
    )
    assert headline(chain) == "lib.X: second"


BAD_ROW = """ray::Map(parse)() (pid=7, ip=10.0.0.7)
  File "/app/etl.py", line 11, in parse
    return float(row["price"])
ValueError: could not convert string to float: '12,99 EUR'

The above exception was the direct cause of the following exception:

ray::Map(parse)() (pid=7, ip=10.0.0.7)
  File "/site-packages/ray/data/_internal/planner/plan_udf_map_op.py", line 80, in _handle_debugger_exception
    raise UserCodeException("UDF failed to process a data block.") from e
ray.exceptions.UserCodeException: UDF failed to process a data block."""


@pytest.mark.parametrize("cut", [0, BAD_ROW.index("line 11")])
def test_what_a_users_function_raised_in_ray_data_is_the_title(cut: int) -> None:
    found = fingerprint("TASK_EXECUTION_EXCEPTION", BAD_ROW[cut:])
    assert found.title == "ValueError: could not convert string to float: '...'"
    alone = BAD_ROW[BAD_ROW.rindex("ray::Map") :]
    assert fingerprint("TASK_EXECUTION_EXCEPTION", alone).title.startswith("ray.exceptions.UserCodeException")
