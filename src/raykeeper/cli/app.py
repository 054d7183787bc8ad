"""All commands as one typer app. A program is imported when it is asked for: `--help` must not pay for any of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from raykeeper.cli import (
    apiserver,
    charts,
    collector,
    crds,
    deleting,
    demo,
    history,
    importing,
    lists,
    login,
    logs,
    opening,
    operator,
    report,
    retaining,
    securityproxy,
    submitter,
)

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Look at history": {
        "report": "why a job failed; without a name: the last failure",
        "jobs": "jobs and what became of them",
        "sessions": "sessions of all clusters",
        "logs": "log files of a session",
        "open": "the page of a job in the browser",
        "login": "sign in to a history server",
        "history": "the web pages and Ray's dashboard, for a store",
    },
    "Try it and set it up": {
        "demo": "run a job, end its Ray, and look at what is left",
        "crds": "print or apply the CustomResourceDefinitions",
        "charts": "write the Helm charts into a folder",
        "version": "print the version",
    },
    "Keep a store": {
        "import": "bring sessions of a KubeRay bucket, or of a disk",
        "delete": "remove sessions for good",
        "retention": "say which sessions are too old, or remove them",
        "hold": "keep a session, whatever its age",
        "release": "let a held session go when its time comes",
    },
    "Programs that pods run": {
        "operator": "reconcile RayClusters, RayJobs and RayServices",
        "collector": "keep the events and logs of the Ray node beside it",
        "apiserver": "clusters, jobs and services over gRPC and HTTP",
        "security-proxy": "check requests before an API server in the same pod",
        "submitter": "give a job to Ray once, and print its log",
        "historyserver": "`history` under KubeRay's name",
        "kuberay-apiserver": "`apiserver` under KubeRay's name",
    },
}
"""Every command in a few words, as the help lists them."""


class CommandGroups(TyperGroup):
    """The help with commands in groups."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - typer's signature
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, words) for name, words in commands.items() if name in self.commands])


# Plain help text: rich would double the time of `--help`.
app = typer.Typer(
    name="raykeeper",
    cls=CommandGroups,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Ray on Kubernetes that remembers.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
operator.register(app)
collector.register(app)
history.register(app)
apiserver.register(app)
securityproxy.register(app)
submitter.register(app)
login.register(app)
report.register(app)
lists.register(app)
logs.register(app)
opening.register(app)
demo.register(app)
crds.register(app)
charts.register(app)
importing.register(app)
deleting.register(app)
retaining.register(app)


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        version()
        raise typer.Exit


@app.callback()
def raykeeper(
    version_wanted: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
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
