"""`kubectl raykeeper`, which kubectl finds as the program `kubectl-raykeeper` on the path."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from raykeeper.errors import Misconfigured, RaykeeperError

if TYPE_CHECKING:
    from raykeeper.plugin.commands import Output
    from raykeeper.plugin.subjects import Place

INTERRUPTED = 130
CANNOT_TELL = 2
_EXITS = "Exit codes: 0 it is well, 1 it is not, 2 the question could not be asked, 3 nobody knows such an object."


class Form(StrEnum):
    """What `-o` takes."""

    TEXT = "text"
    JSON = "json"


Words = Annotated[
    list[str],
    typer.Argument(
        metavar="SUBJECT",
        help="KIND/NAME, KIND NAME or NAME. Kinds: raycluster, rayjob, rayservice, raycronjob (short: cluster, job, "
        "service, cronjob).",
    ),
]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Namespace. Default: that of the context.")]
Context = Annotated[str | None, typer.Option(help="Context of the kubeconfig.")]
Kubeconfig = Annotated[Path | None, typer.Option(help="File. Default: as kubectl finds it.")]
History = Annotated[
    str,
    typer.Option(
        envvar="RAYKEEPER_HISTORY_URL",
        help="Address of a history server. Default: that of the chart ray-history-server, through the Kubernetes API.",
    ),
]
HistoryTokenFile = Annotated[
    Path | None, typer.Option(help="File with the token of that server. Default: RAYKEEPER_AUTH_TOKEN.")
]
OutputForm = Annotated[Form, typer.Option("--output", "-o", help="`text`, or `json` for programs.")]

app = typer.Typer(
    name="kubectl raykeeper",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def kubectl_raykeeper() -> None:
    """Health, failures and logs of Ray clusters, jobs and services; also of those that are gone, if they had a history.

    Examples:

    kubectl raykeeper status rayjob/train

    kubectl raykeeper why train -n team-a

    kubectl raykeeper logs raycluster/demo --tail 100

    kubectl raykeeper support rayservice/llm
    """


@app.command(help=f"One screen of health: conditions in words, pods, last Events, and what it waits for. {_EXITS}")
def status(
    subject: Words,
    namespace: Namespace = "",
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    output: OutputForm = Form.TEXT,
) -> None:
    from raykeeper.plugin import commands
    from raykeeper.plugin.subjects import Place, parse_subject

    place = Place(namespace, context, kubeconfig)
    _run(lambda: commands.status(place, parse_subject(subject), _output(output)))


@app.command(
    help="Why it failed: the history's report, of what lives and of what is gone; without a history, what Kubernetes "
    f"says. {_EXITS}"
)
def why(
    subject: Words,
    namespace: Namespace = "",
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    history: History = "",
    history_token_file: HistoryTokenFile = None,
    output: OutputForm = Form.TEXT,
) -> None:
    from raykeeper.plugin import commands
    from raykeeper.plugin.subjects import parse_subject

    _run(
        lambda: commands.why(
            _place(namespace, context, kubeconfig, history, history_token_file), parse_subject(subject), _output(output)
        )
    )


@app.command(help=f"The history's report alone; with `-o json` all of it. {_EXITS}")
def report(
    subject: Words,
    namespace: Namespace = "",
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    history: History = "",
    history_token_file: HistoryTokenFile = None,
    output: OutputForm = Form.TEXT,
) -> None:
    from raykeeper.plugin import commands
    from raykeeper.plugin.subjects import parse_subject

    _run(
        lambda: commands.report(
            _place(namespace, context, kubeconfig, history, history_token_file), parse_subject(subject), _output(output)
        )
    )


@app.command(
    help="The log of a job's driver or of a head, from its pod; from the history once the pods are gone. Exit codes: "
    "0, 2 if it could not be asked for, 3 if nobody has it."
)
def logs(
    subject: Words,
    namespace: Namespace = "",
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    history: History = "",
    history_token_file: HistoryTokenFile = None,
    pod: Annotated[str, typer.Option(help="A pod of it. Default: a job's submitter, else the head.")] = "",
    container: Annotated[str, typer.Option("--container", "-c", help="Default: the first.")] = "",
    tail: Annotated[int | None, typer.Option(min=1, help="So many last lines alone.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on while there is more.")] = False,
    previous: Annotated[bool, typer.Option("--previous", "-p", help="Of the container before its restart.")] = False,
    from_history: Annotated[bool, typer.Option("--from-history", help="From the history, although pods live.")] = False,
    file: Annotated[str, typer.Option(help="A log file of Ray by its name, from the history.")] = "",
    node: Annotated[str, typer.Option(help="Id of the Ray node that wrote this file.")] = "",
) -> None:
    from raykeeper.plugin import logs as logs_command
    from raykeeper.plugin.subjects import parse_subject

    wanted = logs_command.LogsWanted(pod, container, file, node, tail, follow, previous, from_history)
    _run(
        lambda: logs_command.logs(
            _place(namespace, context, kubeconfig, history, history_token_file),
            parse_subject(subject),
            wanted,
            _write_bytes,
            _warn,
        )
    )


@app.command(
    help="An archive for whoever helps: objects, Events, the end of all logs, the operator's log and the report, with "
    "secrets masked. Exit codes: 0, 2 if it could not be made, 3 if nobody knows such an object."
)
def support(
    subject: Words,
    namespace: Namespace = "",
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    history: History = "",
    history_token_file: HistoryTokenFile = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File. Default: raykeeper-support-<namespace>-<name>-<time>.tar.gz here."),
    ] = None,
) -> None:
    from raykeeper.plugin import support as support_command
    from raykeeper.plugin.subjects import parse_subject

    place = _place(namespace, context, kubeconfig, history, history_token_file)
    _run(lambda: support_command.support(place, parse_subject(subject), output, typer.echo))


def _place(
    namespace: str, context: str | None, kubeconfig: Path | None, history: str, token_file: Path | None
) -> Place:
    import os

    from raykeeper.plugin.subjects import Place

    token = os.environ.get("RAYKEEPER_AUTH_TOKEN", "")
    if token_file is not None:
        try:
            token = token_file.read_text().strip()
        except OSError as exc:
            raise Misconfigured("--history-token-file", str(token_file), f"it cannot be read: {exc.strerror}") from exc
    return Place(namespace, context, kubeconfig, history, token)


def _output(form: Form) -> Output:
    import os

    from raykeeper.plugin.commands import Output

    has_colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Output(sys.stdout.write, _warn, form is Form.JSON, has_colours)


def _warn(text: str) -> None:
    typer.echo(f"raykeeper: {text}", err=True)


def _write_bytes(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _run(command: Callable[[], Coroutine[Any, Any, int]]) -> None:
    import asyncio

    raise typer.Exit(asyncio.run(command()))


def run_command(arguments: Sequence[str]) -> int:
    """Do what the arguments say; the exit code. An error is one line on stderr, never a traceback."""
    try:
        app(list(arguments), prog_name="kubectl raykeeper")
    except SystemExit as end:
        return int(end.code or 0)
    except RaykeeperError as exc:
        _warn(str(exc))
        return exc.exit_code if exc.exit_code != 1 else CANNOT_TELL
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # whoever read us has seen enough; Python would complain when it ends
    return 0
