"""`raykeeper retention`, `hold` and `release`: which sessions stay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Store = Annotated[
    str,
    typer.Option(
        envvar="RAYKEEPER_STORE_URL",
        help="The store, such as `s3://bucket/prefix` or `file:///var/history`.",
        show_default=False,
    ),
]
SessionName = Annotated[str, typer.Argument(help="The session, as `<namespace>/<cluster>/<session>`.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(retention)
    app.command()(hold)
    app.command()(release)


def retention(
    store: Store,
    policy: Annotated[
        Path,
        typer.Option(
            "--retention",
            envvar="RAYKEEPER_RETENTION",
            help="The file that says how long sessions are kept.",
            show_default=False,
        ),
    ],
    apply: Annotated[
        bool, typer.Option("--apply", help="Remove the sessions, instead of saying which would go.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go; this is the default.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="List every session that would go, not just 1,000.")
    ] = False,
) -> None:
    """Say which sessions the retention file would remove and why, or remove them once.

    A history server that is started with --retention does the same every hour. Held and running sessions stay.
    """
    from raykeeper.errors import Misconfigured
    from raykeeper.history.commands.retention import RetentionOrder, run_retention

    if apply and dry_run:
        raise Misconfigured("--apply", "true", "give either --apply or --dry-run")
    run_retention(RetentionOrder(store, policy, apply, everything), typer.echo)


def hold(
    store: Store,
    session: SessionName,
    reason: Annotated[str, typer.Option(help="Why, for whoever finds it held.")] = "",
) -> None:
    """Keep a session, whatever its age: neither retention nor `raykeeper delete` removes it."""
    from raykeeper.history.commands.retention import run_hold

    run_hold(store, session, reason, typer.echo)


def release(store: Store, session: SessionName) -> None:
    """Let a session that was held be removed again, when its time comes."""
    from raykeeper.history.commands.retention import run_release

    run_release(store, session, typer.echo)
