"""`raykeeper crds`: what a cluster must be told before it knows RayClusters and the like."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(crds)


def crds(
    names: Annotated[
        list[str] | None, typer.Argument(help="Kinds, such as `raycluster`; all when none is named.")
    ] = None,
    format_: Annotated[
        Literal["yaml", "json"], typer.Option("--format", help="`yaml`, or `json` as one List in one line.")
    ] = "yaml",
) -> None:
    """Print the CustomResourceDefinitions: raykeeper crds | kubectl apply -f -."""
    from raykeeper.api.crd.files import find_crd_files

    files = find_crd_files(names or [])
    typer.echo(_json_list(files) if format_ == "json" else _yaml_documents(files), nl=False)


def _yaml_documents(files: list[Path]) -> str:
    return "---\n".join(file.read_text() for file in files)


def _json_list(files: list[Path]) -> str:
    import json

    import yaml

    items = [yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader) for file in files]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, separators=(",", ":")) + "\n"
