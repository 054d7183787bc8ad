"""Writes reference pages, CRDs, protobuf modules and OpenAPI documents; `--check` only says which are out of date.

A flag or setting without a description stops it, so nothing can be added undocumented.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import typer
from typer.core import TyperGroup, TyperOption

import bed
import raykeeper
from raykeeper.api.crd.definition import definition_of
from raykeeper.api.crd.descriptions import field_docs
from raykeeper.api.crd.files import CRD_FOLDER
from raykeeper.api.crd.kinds import KINDS
from raykeeper.api.crd.kubernetes import KubernetesTypes
from raykeeper.api.crd.rendering import to_yaml
from raykeeper.apiserver import environment as apiserver_environment
from raykeeper.collector import environment as collector_environment
from raykeeper.history import environment as history_environment
from raykeeper.history.http.keeper_api.openapi import operations_reference
from raykeeper.history.http.keeper_api.serving import OPERATIONS
from raykeeper.operator import environment as operator_environment
from raykeeper.operator.rayjob.machine import TABLE as RAYJOB_TABLE
from raykeeper.securityproxy import environment as securityproxy_environment
from tools.charts import chart_files
from tools.dashboards import monitoring_files
from tools.openapi import openapi_files
from tools.protos import proto_modules

DOCS = Path(__file__).parent.parent / "docs"
NOTICE = "<!-- Written by `make generate` from the code; edit the code. -->\n"


class Undocumented(SystemExit):
    """Something a user can set has no description."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} has no description: every flag, variable and setting needs one")


def cli_page() -> str:
    """Every command with its arguments and options."""
    from bed.main import app as bed_app
    from raykeeper.cli.app import app as raykeeper_app

    sections = [
        section for app in (raykeeper_app, bed_app) for section in command_sections(typer.main.get_command(app))
    ]
    return "\n".join(["# Command line\n", NOTICE, *sections])


def command_sections(command: Any, path: str = "") -> Iterator[str]:
    path = f"{path} {command.name}".strip()
    if not command.help:
        raise Undocumented(f"command `{path}`")
    if not isinstance(command, TyperGroup):
        yield f"## `{path}`\n\n{inspect.cleandoc(command.help)}\n"
        yield from _parameters(command, path)
        return
    for child in sorted(command.commands.values(), key=lambda child: child.name or ""):
        yield from command_sections(child, path)


def _parameters(command: Any, path: str) -> Iterator[str]:
    rows = [_row(parameter, path) for parameter in command.params if parameter.name != "help"]
    if rows:
        yield "\n".join(["| option or argument | default | meaning |", "|---|---|---|", *rows, ""])


def _row(parameter: Any, path: str) -> str:
    is_option = isinstance(parameter, TyperOption)
    spelling = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    if not is_option:
        spelling = f"`{(parameter.metavar or parameter.name).upper()}`"
    if not parameter.help:
        raise Undocumented(f"{spelling} of `{path}`")
    default = "" if parameter.default in (None, False, (), ...) else f"`{parameter.default}`"
    return f"| {spelling} | {default} | {parameter.help} |"


def settings_page() -> str:
    """Every field of every settings class, and every environment variable of ours."""
    classes = sorted(
        {item for module in _modules(raykeeper) for item in _settings_classes(module)},
        key=lambda item: (item.__name__, item.__module__),
    )
    return "\n".join(["# Settings\n", NOTICE, _variables(), *(settings_section(item) for item in classes)])


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(info.name)


def _settings_classes(module: ModuleType) -> Iterator[type[Any]]:
    for name, item in vars(module).items():
        if name.endswith("Settings") and inspect.isclass(item) and dataclasses.is_dataclass(item):
            yield item


def settings_section(item: type[Any]) -> str:
    documented = field_docs(item)
    rows = []
    for field in dataclasses.fields(item):
        if field.name not in documented:
            raise Undocumented(f"setting `{item.__name__}.{field.name}`")
        default = "" if field.default is dataclasses.MISSING else f"`{field.default!r}`"
        rows.append(f"| `{field.name}` | {default} | {documented[field.name]} |")
    title = f"## `{item.__module__}.{item.__name__}`\n\n{inspect.cleandoc(item.__doc__ or '')}\n"
    return "\n".join([title, "| setting | default | meaning |", "|---|---|---|", *rows, ""])


_VARIABLE = re.compile(r'"(RAYKEEPER_[A-Z_]+)"')
_VARIABLES_OF = {
    "operator": operator_environment.VARIABLES,
    "collector": collector_environment.VARIABLES,
    "history server": history_environment.VARIABLES,
    "API server": apiserver_environment.VARIABLES,
    "security proxy": securityproxy_environment.VARIABLES,
    "test bed": {
        "RAYKEEPER_BED_CACHE": "Folder where the test bed keeps what it built; default `~/.cache/raykeeper-bed`.",
        "RAYKEEPER_BED_PROMETHEUS": "Folder with `prometheus` and `promtool` for tests; default: Debian's, fetched.",
        "RAYKEEPER_BED_RUN": "Set by the test bed in every process it starts, to find and end them; not for users.",
    },
}


def _variables() -> str:
    sources = [path for package in (raykeeper, bed) for path in Path(package.__path__[0]).rglob("*.py")]
    if missing := undocumented_variable(sources):
        raise Undocumented(f"environment variable `{missing}`")
    return "\n".join(_variables_section(program, variables) for program, variables in _VARIABLES_OF.items())


def _variables_section(program: str, variables: Mapping[str, str]) -> str:
    rows = [f"| `{name}` | {meaning} |" for name, meaning in sorted(variables.items())]
    return "\n".join([f"## Environment variables of the {program}\n", "| variable | meaning |", "|---|---|", *rows, ""])


def undocumented_variable(sources: Iterable[Path]) -> str | None:
    """A variable of ours that the sources name and the page does not."""
    names = {name for path in sources for name in _VARIABLE.findall(path.read_text())}
    documented = {name for variables in _VARIABLES_OF.values() for name in variables}
    return next(iter(sorted(names - documented)), None)


_REST_NOTICE = "<!-- What follows is written by `make generate` from the code; edit the code. -->\n"


def keeper_api_page() -> str:
    """What a person wrote about the JSON API, then every operation."""
    written, _, _ = (DOCS / "keeper-api.md").read_text().partition(_REST_NOTICE)
    return f"{written}{_REST_NOTICE}\n{operations_reference(OPERATIONS)}"


def rayjob_page() -> str:
    """What a person wrote about RayJobs, then the table of transitions."""
    written, _, _ = (DOCS / "rayjob.md").read_text().partition(_REST_NOTICE)
    rows = [f"| {_states(row.sources)} | {row.when} | {row.target} |" for row in RAYJOB_TABLE]
    return "\n".join([f"{written}{_REST_NOTICE}", "| from | when | to |", "|---|---|---|", *rows, ""])


def _states(sources: Iterable[str]) -> str:
    return ", ".join(source or "New" for source in sources)


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "settings.md": settings_page,
    "keeper-api.md": keeper_api_page,
    "rayjob.md": rayjob_page,
}


def generated_files() -> Iterator[tuple[Path, str]]:
    """Every generated file with what it should contain."""
    for name, page in PAGES.items():
        yield DOCS / name, page()
    kubernetes = KubernetesTypes.committed()
    for kind in KINDS:
        yield CRD_FOLDER / kind.file_name, to_yaml(definition_of(kind, kubernetes))
    yield from proto_modules()
    yield from openapi_files()
    yield from chart_files()
    yield from monitoring_files()


def main() -> int:
    """Write the files, or with `--check` show how they differ."""
    check, stale = "--check" in sys.argv[1:], 0
    for path, new in generated_files():
        old = path.read_text() if path.exists() else ""
        if old == new:
            continue
        if check:
            stale += 1
            sys.stdout.writelines(
                difflib.unified_diff(old.splitlines(True), new.splitlines(True), str(path), "generated")
            )
        else:
            path.write_text(new)
    if stale:
        sys.stdout.write(f"{stale} generated file(s) out of date: run `make generate`\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
