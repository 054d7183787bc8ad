"""YAML inside a spec."""

from __future__ import annotations

import pytest

from raykeeper.operator.shared.yaml_text import parse_mapping

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
