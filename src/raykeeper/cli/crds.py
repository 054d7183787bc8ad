"""`raykeeper crds`: what a cluster must be told before it knows RayClusters and the like."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from raykeeper.kube.client import Kube


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
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete them from the cluster, and with them every Ray object that it has.")
    ] = False,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            help="With --apply or --delete: where the cluster is; else as kubectl finds it, or the pod's own."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="With --apply: also where stored objects would lose fields.")
    ] = False,
) -> None:
    """Print the CustomResourceDefinitions, or with --apply upgrade those of a cluster."""
    from raykeeper.api.crd.files import find_crd_files
    from raykeeper.errors import Misconfigured

    files = find_crd_files(names or [])
    if apply and delete:
        raise Misconfigured("--delete", True, "leave it or --apply out")
    if apply:
        _apply(files, kubeconfig, force=force)
        return
    if delete:
        _delete(files, kubeconfig)
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
    import yaml

    from raykeeper.kube.crds import apply_crds

    definitions = [yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader) for file in files]
    _in_the_cluster(kubeconfig, lambda kube: apply_crds(kube, definitions, force=force))
    typer.echo(f"applied: {_kinds(files)}")


def _delete(files: list[Path], kubeconfig: Path | None) -> None:
    from raykeeper.kube.crds import delete_crds

    # Owners first: a RayJob's cluster is deleted by what looks after RayJobs, and would be made again otherwise.
    ordered = sorted(files, key=lambda file: "raycluster" in file.name)
    names = [".".join([*file.stem.split("_")[::-1]]) for file in ordered]
    _in_the_cluster(kubeconfig, lambda kube: delete_crds(kube, names))
    typer.echo(f"deleted: {_kinds(ordered)}")


def _in_the_cluster(kubeconfig: Path | None, work: Callable[[Kube], Coroutine[Any, Any, None]]) -> None:
    import asyncio

    from prometheus_client import CollectorRegistry

    from raykeeper.kube.client import Kube
    from raykeeper.kube.connect.connection import load_connection
    from raykeeper.kube.metrics import KubeMetrics

    async def connect_and_work() -> None:
        connection = await load_connection(kubeconfig)
        async with Kube(connection, metrics=KubeMetrics(CollectorRegistry())) as kube:
            await work(kube)

    asyncio.run(connect_and_work())


def _kinds(files: list[Path]) -> str:
    return ", ".join(file.stem.partition("_")[2] for file in files)
