"""All commands as one typer app. A program is imported when it is asked for: `--help` must not pay for any of them."""

from __future__ import annotations

from typing import Annotated

import typer

from raykeeper.cli import charts, collector, crds, deleting, demo, history, importing, operator, report, submitter

# Plain help text: rich would double the time of `--help`.
app = typer.Typer(
    name="raykeeper",
    help="Ray on Kubernetes that remembers.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
operator.register(app)
collector.register(app)
history.register(app)
submitter.register(app)
report.register(app)
demo.register(app)
crds.register(app)
charts.register(app)
importing.register(app)
deleting.register(app)


@app.callback()
def raykeeper() -> None:
    """Ray on Kubernetes that remembers."""


@app.command()
def version(
    short: Annotated[bool, typer.Option("--short", help="Print the number alone.")] = False,
) -> None:
    """Print the version of raykeeper and of what it runs on."""
    import platform
    from importlib import metadata

    number = metadata.version("raykeeper")
    typer.echo(number if short else f"raykeeper {number} (Python {platform.python_version()}, {platform.system()})")
