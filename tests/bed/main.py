"""The `bed` command: a real cluster for a person to try things on. Each command imports what it needs when it runs."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from bed.errors import BedError
from raykeeper.errors import RaykeeperError

app = typer.Typer(
    name="bed",
    help="The test bed: a real Kubernetes control plane on this machine.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.command()
def up(
    node: Annotated[bool, typer.Option("--node", help="Add a real node that runs pods (root on Linux).")] = False,
    kwok: Annotated[int, typer.Option("--kwok", help="Add this many fake nodes, whose pods only seem to run.")] = 0,
    minio: Annotated[bool, typer.Option("--minio", help="Add a MinIO server with a bucket.")] = False,
) -> None:
    """Start a cluster that lives until `bed down`, and print the lines to put into a shell: eval "$(bed up)"."""
    from bed.up import Wish, bring_up

    for line in bring_up(Wish(node=node, kwok_nodes=kwok, minio=minio)):
        typer.echo(line)


@app.command()
def down() -> None:
    """Stop everything `bed up` started and remove its state; also what crashed test runs left."""
    from bed.up import take_down

    take_down()


@app.command()
def status() -> None:
    """List the daemons that run; exit code 1 when none does."""
    from bed.up import running

    found = running()
    for name, process in found:
        typer.echo(f"{process.pid:>8}  {name}")
    if not found:
        typer.echo("not up")
        raise typer.Exit(1)


@app.command()
def build(
    names: Annotated[
        list[str] | None, typer.Argument(help="Binaries; those of `make test` when none is named.")
    ] = None,
    interop: Annotated[
        bool, typer.Option("--interop", help="Other projects' programs instead, such as Kueue.")
    ] = False,
    soak: Annotated[bool, typer.Option("--soak", help="Those of `make soak` instead.")] = False,
) -> None:
    """Build the binaries that are missing in the cache and print where they are."""
    from bed import binaries

    wanted = names or binaries.needed_for("interop" if interop else "soak" if soak else "test")
    binaries.build(wanted)
    for name in wanted:
        typer.echo(binaries.BINARIES[name].path)


@app.command()
def floor(
    pods: Annotated[int, typer.Argument(min=1, help="How many.")] = 1200,
) -> None:
    """Time plain pods from their creation until Running, on the nodes of `bed up --kwok N` (200 pods each)."""
    import asyncio

    from bed.floor import measure_floor
    from bed.up import running_kubeconfig

    typer.echo(asyncio.run(measure_floor(running_kubeconfig(), pods)))


@app.command()
def pins(
    version: Annotated[str, typer.Argument(help="A version of Ray, such as 2.60.0.")],
    libraries: Annotated[bool, typer.Option("--libraries", help="With all of Ray's libraries.")] = False,
) -> None:
    """Resolve the dependencies of a version of Ray anew and write its pins, to be committed."""
    from bed.rayenv import write_pins

    typer.echo(write_pins(version, has_libraries=libraries))


def main() -> None:
    """Entry point: an error of ours is one line on stderr, never a traceback."""
    try:
        app()
    except (BedError, RaykeeperError) as failure:
        typer.echo(f"bed: {failure}", err=True)
        sys.exit(1)
