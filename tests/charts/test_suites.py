"""The suites in helm-unittest's format, run by helm-unittest itself, as a chart's own developers would."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from bed.binaries import binary
from tools.charts import CHARTS, NAMES

pytestmark = pytest.mark.bed  # it is built from its Go module

KUBERAYS_CASES: Final = 224
"""As many have the suites of KubeRay's three charts."""
PATTERN: Final = "tests/**/*_test.yaml"


def run_suites(chart: Path) -> int:
    """How many cases there are; a failure shows what helm-unittest says."""
    done = subprocess.run(
        [binary("helm-unittest"), "--strict", f"--file={PATTERN}", chart], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"Tests: +(\d+) passed", done.stdout)
    assert found, done.stdout
    return int(found[1])


def test_all_suites_pass_and_are_more_than_kuberays() -> None:
    assert sum(run_suites(CHARTS / name) for name in NAMES) > KUBERAYS_CASES
