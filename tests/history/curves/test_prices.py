"""The price list: what is wrong with it is told by its line, before the server starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from raykeeper.errors import Misconfigured
from raykeeper.history.prices import NodeFacts, NodeHoursUsed, parse_price_list, read_price_list
from raykeeper.history.sources import read_settings
from raykeeper.settings.yaml_file import YamlFileError

GOOD = """\
currency: USD
prices:
- namespace: team-a
  cluster: "train-*"
  labels: {ray.io/node-group: gpu}
  cpu_hour: 0.04
  memory_gib_hour: 0.005
  gpu_hour:
    H100: 8
    "*L4*": 0.7
- cpu_hour: 0.03
  gpu_hour: 2
"""


def test_the_first_rule_that_fits_counts() -> None:
    prices = parse_price_list(GOOD.encode())
    special = prices.of_node(NodeFacts("team-a", "train-7", {"ray.io/node-group": "gpu"}))
    usual = prices.of_node(NodeFacts("team-b", "train-7", {"ray.io/node-group": "gpu"}))
    assert special is not None
    assert usual is not None
    assert (special.cpu_hour, usual.cpu_hour) == (0.04, 0.03)
    assert [special.of_gpu(name) for name in ("NVIDIA H100 80GB", "nvidia l4", "A100")] == [8.0, 0.7, None]
    assert usual.of_gpu("anything") == 2.0


def test_json_is_a_price_list_too() -> None:
    text = json.dumps({"currency": "USD", "prices": [{"cpu_hour": 0.1}]})
    [price] = parse_price_list(text.encode()).prices
    assert price.cost(NodeHoursUsed(1, 10, 10, {"": 3})) == {"CPU": 1.0}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "line 1: it is empty"),
        ("[]", "line 1: here must be names with values"),
        ("currency: USD\n", "line 1: prices is missing"),
        ("currency: USD\nprices: []\n", "line 2: prices must be a list of rules"),
        ("currency: USD\nprices:\n- cpu_hour: 1\n  cpu_huor: 2\n", "line 4: 'cpu_huor' is not known"),
        ("currency: USD\nprices:\n- cpu_hour: 1\n  cpu_hour: 2\n", "line 4: 'cpu_hour' is given twice"),
        ("currency: USD\nprices:\n- cpu_hour: -1\n", "line 3: a price must be a number of 0 or more"),
        ("currency: USD\nprices:\n- cpu_hour: .nan\n", "line 3: a price must be a number"),
        ("currency: USD\nprices:\n- cpu_hour: cheap\n", "line 3: a price must be a number"),
        ("currency: USD\nprices:\n- cpu_hour: [1]\n", "line 3: a price must be a number"),
        ("currency: USD\nprices:\n- gpu_hour:\n    A100: much\n", "line 4: a price must be a number"),
        ("currency: USD\nprices:\n- namespace: x\n", "line 3: the rule has no price"),
        ("currency: USD\nprices:\n- labels: x\n  cpu_hour: 1\n", "line 3: here must be names with values"),
        ("currency: [USD]\nprices:\n- cpu_hour: 1\n", "line 1: here must be a text"),
        ("currency: USD\nprices: [\n", "line 3: no YAML"),
        ("a: &a [*a]\n", "line 1: 'a' is not known"),
        ("currency: !!python/object:os.system x\nprices: 1", "line 2: prices must be a list of rules"),
        ("\x00", "line 1: no YAML"),
    ],
)
def test_what_is_wrong_is_told_by_its_line(text: str, told: str) -> None:
    with pytest.raises(YamlFileError) as refused:
        parse_price_list(text.encode())
    assert str(refused.value).startswith(told)


def test_a_file_that_is_no_price_list_stops_the_server(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("currency: USD\nprices:\n- cpu_hour: free\n")
    flags = [f"--store=file://{tmp_path}", f"--price-list={file}"]
    with pytest.raises(Misconfigured, match="line 3"):
        read_settings(flags, {})
    with pytest.raises(Misconfigured, match="readable file"):
        read_price_list("--price-list", tmp_path / "none")
    file.write_text(GOOD)
    settings = read_settings(flags, {})
    assert settings.prices is not None
    assert settings.prices.currency == "USD"


def test_the_example_in_the_manual_is_a_price_list() -> None:
    manual = (Path(__file__).parents[3] / "docs" / "resource-curves.md").read_text()
    example = manual.partition("```yaml\n")[2].partition("```")[0]
    prices = parse_price_list(example.encode())
    assert (prices.currency, len(prices.prices)) == ("USD", 3)
