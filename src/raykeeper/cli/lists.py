"""`raykeeper jobs` and `raykeeper sessions`: what there is to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from raykeeper.cli.sources import CacheDir, Server, Store, Token, TokenFile

if TYPE_CHECKING:
    from raykeeper.history.commands.lists import ListCommand

Namespace = Annotated[str, typer.Option(help="Only those of this namespace.")]
Cluster = Annotated[str, typer.Option(help="Only those of clusters of this name.")]
Limit = Annotated[int, typer.Option(min=1, max=500, help="So many at most, the newest first.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the list as JSON, as the server answers it.")]


def register(app: typer.Typer) -> None:
    """Add both commands."""
    app.command()(jobs)
    app.command()(sessions)


def jobs(
    namespace: Namespace = "",
    cluster: Cluster = "",
    limit: Limit = 20,
    as_json: AsJson = False,
    store: Store = "",
    server: Server = "",
    token: Token = "",
    token_file: TokenFile = None,
    cache_dir: CacheDir = None,
) -> None:
    """List jobs of all clusters with what became of them, the newest first.

    The last column is what `raykeeper report` and `raykeeper logs` take.
    """
    from raykeeper.history.commands.lists import ListCommand
    from raykeeper.history.commands.subjects import Source

    source = Source(store, server, token_file, cache_dir, token)
    _run(ListCommand("jobs", source, namespace, cluster, limit, as_json))


def sessions(
    namespace: Namespace = "",
    cluster: Cluster = "",
    limit: Limit = 20,
    as_json: AsJson = False,
    store: Store = "",
    server: Server = "",
    token: Token = "",
    token_file: TokenFile = None,
    cache_dir: CacheDir = None,
) -> None:
    """List sessions of all clusters, the newest first: a session is the life of one Ray head.

    The last column is what `raykeeper report` and `raykeeper logs` take.
    """
    from raykeeper.history.commands.lists import ListCommand
    from raykeeper.history.commands.subjects import Source

    source = Source(store, server, token_file, cache_dir, token)
    _run(ListCommand("sessions", source, namespace, cluster, limit, as_json))


def _run(command: ListCommand) -> None:
    import os

    from raykeeper.errors import RaykeeperError
    from raykeeper.history.commands.lists import run

    try:
        run(command, os.environ)
    except (RaykeeperError, OSError) as exc:
        typer.echo(f"raykeeper: {exc}", err=True)
        raise typer.Exit(2) from exc
