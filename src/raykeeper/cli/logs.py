"""`raykeeper logs`: log files of a session that is over."""

from __future__ import annotations

from typing import Annotated

import typer

from raykeeper.cli.sources import CacheDir, Server, Store, Token, TokenFile


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(logs)


def logs(
    subject: Annotated[
        str,
        typer.Argument(
            help="<namespace>/<cluster>/<session> for the list of its files, or …/<job> for the log of a job's driver. "
            "The session may be `latest`."
        ),
    ],
    actor: Annotated[str, typer.Option(help="Id of an actor: what its process wrote.")] = "",
    task: Annotated[str, typer.Option(help="Id of a task: what one attempt of it wrote.")] = "",
    attempt: Annotated[int, typer.Option(help="Number of that attempt, from 0.")] = 0,
    file: Annotated[str, typer.Option(help="A file of a node, as the list names it.")] = "",
    node: Annotated[str, typer.Option(help="Id of that node.")] = "",
    err: Annotated[bool, typer.Option("--err", help="The standard error of an actor or a task.")] = False,
    tail: Annotated[int | None, typer.Option(min=1, help="So many last lines alone.")] = None,
    store: Store = "",
    server: Server = "",
    token: Token = "",
    token_file: TokenFile = None,
    cache_dir: CacheDir = None,
) -> None:
    """Print a log file of a session: of a job's driver, an actor, a task, or by its name.

    `ray logs` cannot do this: it refuses the address of a history server, which has a path.
    """
    import os
    import sys

    from raykeeper.errors import RaykeeperError
    from raykeeper.history.commands.logs import ALL_LINES, LogQuery, LogsCommand, run
    from raykeeper.history.commands.subjects import Source

    wanted = LogQuery(
        node_id=node,
        filename=file,
        actor_id=actor,
        task_id=task,
        attempt_number=attempt,
        suffix="err" if err else "out",
        lines=tail or ALL_LINES,
    )
    try:
        run(
            LogsCommand(subject, Source(store, server, token_file, cache_dir, token), wanted),
            os.environ,
            sys.stdout.buffer.write,
        )
    except (RaykeeperError, OSError) as exc:
        typer.echo(f"raykeeper: {exc}", err=True)
        raise typer.Exit(2) from exc
