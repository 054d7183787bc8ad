"""The version is the same wherever it is written, and one command changes it."""

from __future__ import annotations

import re
import shutil
from importlib import metadata
from pathlib import Path
from typing import Final

import pytest
import yaml

from tools.charts import CHARTS, NAMES
from tools.release import ROOT, change_version, stated_versions

COPIED: Final = (
    "pyproject.toml",
    "Dockerfile",
    "README.md",
    "CHANGELOG.md",
    "docs",
    "examples",
    "helm-chart",
    ".github",
)
WITH_PROGRAMS: Final = ("kuberay-operator", "kuberay-apiserver", "ray-history-server")
"""Charts whose default image is ours."""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in (*COPIED, "tests/golden/charts"):
        source = ROOT / name
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, tmp_path / name)
        else:
            shutil.copy(source, tmp_path / name)
    return tmp_path


def test_every_place_states_the_version_of_the_package() -> None:
    others = [(path, version) for path, version in stated_versions(ROOT) if version != metadata.version("raykeeper")]
    assert others == []


@pytest.mark.parametrize("name", NAMES)
def test_a_chart_has_the_version_of_the_package(name: str) -> None:
    chart = yaml.safe_load((CHARTS / name / "Chart.yaml").read_text())
    assert chart["version"] == metadata.version("raykeeper")
    assert chart.get("appVersion") == (metadata.version("raykeeper") if name in WITH_PROGRAMS else None)


def test_one_command_changes_the_version_everywhere(copy: Path) -> None:
    before = [path for path, _ in stated_versions(copy)]
    change_version(copy, "12.34.56")
    assert [path for path, _ in stated_versions(copy)] == before
    assert {version for _, version in stated_versions(copy)} == {"12.34.56"}


def test_nothing_that_users_read_is_left_at_the_old_version(copy: Path) -> None:
    old = metadata.version("raykeeper")
    change_version(copy, "12.34.56")
    history = copy / "CHANGELOG.md"
    files = [path for path in copy.rglob("*") if path.is_file() and path != history and path.suffix != ".png"]
    stale = [path for path in files if re.search(rf"(?<![\d.]){re.escape(old)}(?![\d.])", path.read_text())]
    assert stale == []


@pytest.mark.parametrize(
    ("newest", "sections"),
    [
        ("## 1.2.0 (unreleased)", ["## 1.3.0 (unreleased)", "## 1.1.0 (2026-01-01)"]),
        ("## 1.2.0 (2026-02-02)", ["## 1.3.0 (unreleased)", "## 1.2.0 (2026-02-02)", "## 1.1.0 (2026-01-01)"]),
    ],
)
def test_a_released_section_of_the_changes_stays_and_an_open_one_is_renamed(
    newest: str, sections: list[str], tmp_path: Path
) -> None:
    (tmp_path / "CHANGELOG.md").write_text(f"# Changes\n\n{newest}\n\n- one\n\n## 1.1.0 (2026-01-01)\n\n- two\n")
    change_version(tmp_path, "1.3.0")
    text = (tmp_path / "CHANGELOG.md").read_text()
    assert [line for line in text.splitlines() if line.startswith("## ")] == sections
    assert text.startswith("# Changes\n\n## 1.3.0 (unreleased)\n\n")
    assert "- one" in text
