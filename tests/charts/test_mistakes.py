"""What somebody sees who made a typical mistake in his values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from support.golden import AssertGolden
from support.helm_charts import ROOT, Chart

TABLE: Final[dict[str, list[Any]]] = yaml.safe_load((Path(__file__).parent / "mistakes.yaml").read_text())
GOLDEN: Final = ROOT / "tests" / "golden" / "charts" / "mistakes"
_FRAME: Final = re.compile(
    r"Error: (execution error at \([^)]*\): |values don't meet the specifications of the schema.*\n)"
)
_HINTS: Final = re.compile(r"^(Use --debug flag to render out invalid YAML|coalesce\.go:.*|[a-z-]+:)$", re.MULTILINE)


def told(chart: Chart, values: Any) -> str:
    """What Helm says, without what it says about every error."""
    lines = [line for line in _HINTS.sub("", _FRAME.sub("", chart.refusal(values))).splitlines() if line]
    # Helm walks a map of Go through a schema: several errors come in any order.
    return "\n".join(sorted(lines) if all(line.startswith("- ") for line in lines) else lines)


@pytest.mark.parametrize("name", TABLE)
def test_a_mistake_is_refused_with_the_place_and_the_cure(name: str, assert_golden: AssertGolden) -> None:
    chart = Chart(name)
    assert_golden(GOLDEN / f"{name}.yaml", [{"values": values, "told": told(chart, values)} for values in TABLE[name]])
