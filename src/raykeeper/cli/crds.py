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
    apply: Annotated[
        bool, typer.Option("--apply", help="Install or upgrade them in the cluster, instead of printing them.")
    ] = False,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(help="With --apply: where the cluster is; else as kubectl finds it, or the pod's own."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="With --apply: also where stored objects would lose fields.")
    ] = False,
) -> None:
    """Print the CustomResourceDefinitions, or with --apply upgrade those of a cluster."""
    from raykeeper.api.crd.files import find_crd_files

    files = find_crd_files(names or [])
    if apply:
        _apply(files, kubeconfig, force=force)
        return
    typer.echo(_json_list(files) if format_ == "json" else _yaml_documents(files), nl=False)


def _yaml_documents(files: list[Path]) -> str:
    return "---\n".join(file.read_text() for file in files)


def _json_list(files: list[Path]) -> str:
    import json

    import yaml

    items = [yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader) for file in files]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, separators=(",", ":")) + "\n"


def _apply(files: list[Path], kubeconfig: Path | None, *, force: bool) -> None:
    import asyncio

    import yaml
    from prometheus_client import CollectorRegistry

    from raykeeper.kube.client import Kube
    from raykeeper.kube.connect.connection import load_connection
    from raykeeper.kube.crds import apply_crds
    from raykeeper.kube.metrics import KubeMetrics

    async def apply_all() -> None:
        connection = await load_connection(kubeconfig)
        async with Kube(connection, metrics=KubeMetrics(CollectorRegistry())) as kube:
            definitions = [yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader) for file in files]
            await apply_crds(kube, definitions, force=force)

    asyncio.run(apply_all())
    typer.echo(f"applied: {', '.join(file.stem.partition('_')[2] for file in files)}")
