"""YAML inside a spec."""

from __future__ import annotations

import time

import pytest

from raykeeper.api.yaml_text import parse_mapping

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{after}: &{after} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, after in zip("abcdefg", "bcdefgh", strict=True)
)


def test_a_mapping_is_read_with_its_aliases() -> None:
    assert parse_mapping("a: &x {b: 1}\nc: *x\n") == {"a": {"b": 1}, "c": {"b": 1}}
    assert parse_mapping(" \n") == {}
    assert parse_mapping("# nothing yet\n") == {}


@pytest.mark.parametrize("text", ["a: [", "just words", "- a\n- b", "!!python/object:os.system x", 'a: "\\ud800"'])
def test_what_is_no_mapping_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="YAML"):
        parse_mapping(text)


def test_a_few_lines_that_stand_for_millions_of_values_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 100000 values"):
        parse_mapping(LAUGHS)
    with pytest.raises(ValueError, match=r"more than 100000 values|YAML"):
        parse_mapping("a: &a [*a]\n")


MERGES = "l0: &l0 {a: 1, b: 2}\n" + "".join(
    f"l{number}: &l{number} {{<<: [{', '.join([f'*l{number - 1}'] * 10)}]}}\n" for number in range(1, 9)
)
WIDE = f"a: &a {{{', '.join(f'k{number}: 1' for number in range(2000))}}}\nb: {{<<: [{', '.join(['*a'] * 2000)}]}}\n"


@pytest.mark.parametrize("text", [MERGES, WIDE], ids=["deep", "wide"])
def test_merges_that_stand_for_millions_of_values_are_refused_while_they_are_read(text: str) -> None:
    began = time.process_time()
    with pytest.raises(ValueError, match="more than 100000 values"):
        parse_mapping(text)
    assert time.process_time() - began < 5, "the values were copied first"


def test_merges_of_a_usual_size_are_read() -> None:
    text = "a: &a {x: 1, y: 2}\nb: &b {<<: *a, y: 3}\nc: {<<: [*b, {z: 4}]}\n"
    assert parse_mapping(text) == {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}, "c": {"x": 1, "y": 3, "z": 4}}
    with pytest.raises(ValueError, match="YAML"):
        parse_mapping("a: &a {<<: *a}\nb: {<<: 5}\n")
