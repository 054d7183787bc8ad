"""The reference pages say everything a user can set, and nothing can be added without saying it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer

from raykeeper.api.crd.descriptions import field_docs
from tools.generate import (
    DOCS,
    PAGES,
    Undocumented,
    command_sections,
    settings_section,
    undocumented_variable,
)


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_page_is_what_the_code_says(name: str) -> None:
    assert (DOCS / name).read_text() == PAGES[name](), "run `make generate`"


def test_a_flag_without_help_is_refused_by_name() -> None:
    app = typer.Typer(name="tool")

    @app.command(name="run", help="Run it.")
    def run(quick: Annotated[bool, typer.Option("--quick")] = False) -> None: ...

    with pytest.raises(Undocumented, match="`--quick` of `run` has no description"):
        list(command_sections(typer.main.get_command(app)))


def test_a_command_without_help_is_refused_by_name() -> None:
    app = typer.Typer(name="tool")
    app.command(name="run")(lambda: None)
    with pytest.raises(Undocumented, match="command `run` has no description"):
        list(command_sections(typer.main.get_command(app)))


@dataclass(frozen=True)
class HalfToldSettings:
    """Settings of which one is not explained."""

    told: int = 1
    """What it is for."""
    untold: int = 2


def test_a_setting_without_a_text_under_it_is_refused_by_name() -> None:
    assert field_docs(HalfToldSettings) == {"told": "What it is for."}
    with pytest.raises(Undocumented, match=r"`HalfToldSettings\.untold` has no description"):
        settings_section(HalfToldSettings)


def test_an_environment_variable_that_no_page_names_is_found(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text('os.environ["RAYKEEPER_" "NEW"]; os.environ["RAYKEEPER_SECRET_SWITCH"]')
    assert undocumented_variable([tmp_path / "program.py"]) == "RAYKEEPER_SECRET_SWITCH"


def _named_files() -> set[tuple[str, str]]:
    """Python files that the documents name, each with the page; a page may leave out the beginning of a path."""
    pages = [*DOCS.rglob("*.md"), DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md"]
    named = re.compile(r"`([\w./]+\.py)`")
    return {(page.name, file) for page in pages for file in named.findall(page.read_text())}


def test_every_python_file_that_a_document_names_is_there() -> None:
    folders = ("src", "tests", "tools", "bench", "examples")
    files = [path.as_posix() for folder in folders for path in (DOCS.parent / folder).rglob("*.py")]
    users = {"my_script.py", "main.py", "train.py"}  # of examples
    missing = {(page, file) for page, file in _named_files() if not any(path.endswith(f"/{file}") for path in files)}
    assert {(page, file) for page, file in missing if file not in users} == set()
