"""One version everywhere: `python -m tools.release` shows where it stands; with a new version it changes them all."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
VERSION: Final = r"\d+\.\d+\.\d+"
_IMAGE: Final = (
    rf"raykeeper(?:-collector)?:({VERSION})|raykeeper-({VERSION})-amd64\.tar|raykeeper --set image\.tag=({VERSION})"
)
_PLACES: Final = (
    ("pyproject.toml", rf'^version = "({VERSION})"'),
    ("helm-chart/*/Chart.yaml", rf"^(?:version|appVersion): ({VERSION})$"),
    ("helm-chart/*/README.md", _IMAGE),
    ("Dockerfile", _IMAGE),
    ("README.md", _IMAGE),
    ("docs/**/*.md", _IMAGE),
    ("examples/**/*.yaml", _IMAGE),
    (".github/ISSUE_TEMPLATE/bug.yml", rf"raykeeper ({VERSION}),"),
    (
        "tests/golden/charts/**/*.yaml",
        rf"helm\.sh/chart: [a-z-]+-({VERSION})$|app\.kubernetes\.io/version: ({VERSION})$|{_IMAGE}",
    ),
)
"""Files, and how the version is written in them. Everything else asks the installed package."""
_SECTION: Final = re.compile(rf"^## ({VERSION}) \((.+)\)$", re.MULTILINE)
UNRELEASED: Final = "unreleased"


def stated_versions(root: Path) -> Iterator[tuple[Path, str]]:
    """Every place that states the version, with what it says."""
    for path, pattern in _files(root):
        for found in pattern.finditer(path.read_text()):
            yield path, _group(found)
    yield root / "CHANGELOG.md", _newest_section(root)[1]


def change_version(root: Path, new: str) -> None:
    """Write the new version into every place; CHANGELOG.md gets a section for it."""
    for path, pattern in _files(root):
        text = path.read_text()
        changed = pattern.sub(lambda found: found[0].replace(_group(found), new), text)
        if changed != text:
            path.write_text(changed)
    _open_section(root, new)


def _files(root: Path) -> Iterator[tuple[Path, re.Pattern[str]]]:
    for glob, pattern in _PLACES:
        for path in sorted(root.glob(glob)):
            yield path, re.compile(pattern, re.MULTILINE)


def _group(found: re.Match[str]) -> str:
    return next(group for group in found.groups() if group)


def _newest_section(root: Path) -> re.Match[str]:
    found = _SECTION.search((root / "CHANGELOG.md").read_text())
    if found is None:
        raise SystemExit(f"CHANGELOG.md has no section such as `## 0.1.0 ({UNRELEASED})`")
    return found


def _open_section(root: Path, new: str) -> None:
    """A section that is not released yet changes its number; after a released one a new section is opened."""
    newest, title = _newest_section(root), f"## {new} ({UNRELEASED})"
    text = (root / "CHANGELOG.md").read_text()
    rest = text[newest.end() :] if newest[2] == UNRELEASED else f"\n\n{text[newest.start() :]}"
    (root / "CHANGELOG.md").write_text(f"{text[: newest.start()]}{title}{rest}")


def main(arguments: list[str]) -> int:
    """Change the version where one is given; then show what is stated, and fail unless it is the same everywhere."""
    if arguments:
        if not re.fullmatch(VERSION, arguments[0]):
            raise SystemExit(
                f"{arguments[0]!r} is no version: three numbers with dots, as Helm and PyPI both take them"
            )
        change_version(ROOT, arguments[0])
    stated = list(stated_versions(ROOT))
    versions = sorted({version for _, version in stated})
    for version in versions:
        files = {path for path, said in stated if said == version}
        print(f"{version} in {len(files)} files")
    return 0 if len(versions) == 1 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
