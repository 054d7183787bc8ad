"""The programs that pods run, by the command that starts each; imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence


def _operator(arguments: Sequence[str]) -> int:
    from raykeeper.operator.main import run

    return run(arguments)


def _collector(arguments: Sequence[str]) -> int:
    from raykeeper.collector.main import run

    return run(arguments)


def _history(arguments: Sequence[str]) -> int:
    from raykeeper.history.main import run

    return run(arguments)


def _historyserver(arguments: Sequence[str]) -> int:
    from raykeeper.history.main import run

    return run(arguments, as_kuberay=True)


def _submitter(arguments: Sequence[str]) -> int:
    from raykeeper.submitter.main import run

    return run(arguments)


PROGRAMS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "operator": _operator,
    "collector": _collector,
    "history": _history,
    "historyserver": _historyserver,
    "submitter": _submitter,
}
"""Each takes what stands after its command, and answers with the exit code."""
