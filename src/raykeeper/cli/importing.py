"""`raykeeper import`: history that is elsewhere, brought into a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="import")(import_)


def import_(
    source: Annotated[
        str,
        typer.Argument(
            help="A bucket that KubeRay filled (`s3://bucket/prefix` or a folder), Ray's folder `/tmp/ray`, one "
            "`session_…` folder in it, or the spool of a collector.",
            show_default=False,
        ),
    ],
    store: Annotated[
        str,
        typer.Option(
            envvar="RAYKEEPER_STORE_URL",
            help="The store to import into, such as `s3://bucket/prefix` or `file:///var/history`.",
            show_default=False,
        ),
    ],
    session: Annotated[
        str | None, typer.Option(help="Only this session, as `<namespace>/<cluster>/<session>`. Default: all.")
    ] = None,
    namespace: Annotated[
        str, typer.Option(help="Of sessions on a disk, where the collector's spool does not tell it.")
    ] = "local",
    cluster: Annotated[
        str, typer.Option(help="Of sessions on a disk, where the collector's spool does not tell it.")
    ] = "imported",
    node_id: Annotated[
        str | None, typer.Option(help="Of the Ray node whose disk it is, where Ray's own files do not tell it.")
    ] = None,
    spool: Annotated[
        Path | None,
        typer.Option(help="Where the collector left unsent segments; `event-data` beside Ray's folders otherwise."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be written, and write nothing.")] = False,
) -> None:
    """Bring a KubeRay bucket, or sessions left on a disk, into a store. May be interrupted and repeated at any time.

    Sessions that still run are left out. The exit code is 1 if something could not be read; the summary names it.
    """
    from raykeeper.history.commands.import_sessions.command import ImportOrder, run_import
    from raykeeper.history.commands.import_sessions.sources import DiskNames

    names = DiskNames(namespace, cluster, node_id or "", spool)
    order = ImportOrder(source, store, session or "", names, dry_run)
    raise typer.Exit(run_import(order, typer.echo))
