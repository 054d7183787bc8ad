"""The history server as a process: its settings, its log, then the program itself."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from raykeeper.history.sources import read_settings
from raykeeper.logs import Log, set_up_logs

log = Log("raykeeper.history")


def run(arguments: Sequence[str], environment: Mapping[str, str] = os.environ, *, as_kuberay: bool = False) -> int:
    """Be the history server until it is told to end; the exit code.

    Raises `Misconfigured` while there is no log yet to tell it in.
    """
    settings = read_settings(arguments, environment, as_kuberay=as_kuberay)
    set_up_logs(settings.logs)
    if settings.ignored:
        log.warning("settings without effect", settings=settings.ignored)
    if settings.access.is_undecided:
        log.warning("anybody who reaches this address can read all history; set --auth=token", bind=settings.bind)
    # Only now, so that a wrong setting is told before anything heavy is loaded.
    from raykeeper.history.program import serve

    return serve(settings, environment)
