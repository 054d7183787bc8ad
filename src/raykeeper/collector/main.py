"""The collector as a process: its settings, its log, then the program itself."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from raykeeper.collector.sources import read_settings
from raykeeper.logs import Log, set_up_logs

log = Log("raykeeper.collector")


def run(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> int:
    """Be the collector until it is done; the exit code.

    Raises `Misconfigured` while there is no log yet to tell it in.
    """
    settings = read_settings(arguments, environment)
    set_up_logs(settings.logs)
    if settings.ignored:
        log.warning("settings without effect", settings=settings.ignored)
    # Only now, so that a wrong setting is told before anything heavy is loaded.
    from raykeeper.collector.program import serve

    return serve(settings, environment)
