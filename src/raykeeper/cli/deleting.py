"""`raykeeper delete`: history that is to be forgotten."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(delete)


def delete(
    store: Annotated[
        str,
        typer.Option(
            envvar="RAYKEEPER_STORE_URL",
            help="The store, such as `s3://bucket/prefix` or `file:///var/history`.",
            show_default=False,
        ),
    ],
    session: Annotated[
        str | None, typer.Argument(help="The session, as `<namespace>/<cluster>/<session>`.", show_default=False)
    ] = None,
    older_than: Annotated[
        str | None, typer.Option(help="All sessions to which nobody wrote for so long, such as `90d`, `12h` or `26w`.")
    ] = None,
    namespace: Annotated[str | None, typer.Option(help="With `--older-than`: only sessions of this namespace.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and delete nothing.")] = False,
    even_held: Annotated[
        bool, typer.Option("--even-held", help="Delete sessions that somebody holds, too, and their holds.")
    ] = False,
) -> None:
    """Remove sessions from a store for good: events, logs, tables and their entries in the list.

    Says what goes and asks before anything does. What is known of the cluster as a whole stays.
    """
    from raykeeper.history.commands.delete import DeleteOrder, run_delete

    def confirm(sessions: int) -> None:
        if not yes:
            typer.confirm(f"Delete {sessions} session(s) for good?", abort=True)

    order = DeleteOrder(store, session or "", older_than or "", namespace or "", dry_run, even_held)
    run_delete(order, typer.echo, confirm)
