"""The programs that pods run, by the command that starts each; imported when it is asked for."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager


@contextmanager
def importing() -> Iterator[None]:
    """Import a program here: its modules stay to the end, so nobody looks for garbage among them, now or later.

    A hundred such looks are a seventh of the operator's imports; at 100m of CPU that is most of a second.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _operator(arguments: Sequence[str]) -> int:
    with importing():
        from raykeeper.operator.main import run
    return run(arguments)


def _collector(arguments: Sequence[str]) -> int:
    with importing():
        from raykeeper.collector.main import run
    return run(arguments)


def _history(arguments: Sequence[str]) -> int:
    with importing():
        from raykeeper.history.main import run
    return run(arguments)


def _historyserver(arguments: Sequence[str]) -> int:
    with importing():
        from raykeeper.history.main import run
    return run(arguments, as_kuberay=True)


def _apiserver(arguments: Sequence[str]) -> int:
    with importing():
        from raykeeper.apiserver.main import run
    return run(arguments)


def _kuberay_apiserver(arguments: Sequence[str]) -> int:
    with importing():
        from raykeeper.apiserver.main import run
    return run(arguments, as_kuberay=True)


def _security_proxy(arguments: Sequence[str]) -> int:
    with importing():
        from raykeeper.securityproxy.main import run
    return run(arguments)


def _submitter(arguments: Sequence[str]) -> int:
    with importing():
        from raykeeper.submitter.main import run
    return run(arguments)


PROGRAMS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "operator": _operator,
    "collector": _collector,
    "history": _history,
    "historyserver": _historyserver,
    "apiserver": _apiserver,
    "kuberay-apiserver": _kuberay_apiserver,
    "security-proxy": _security_proxy,
    "submitter": _submitter,
}
"""Each takes what stands after its command, and answers with the exit code."""
