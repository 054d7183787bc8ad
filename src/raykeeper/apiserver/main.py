"""The API server as a process: its settings, its log, then the program itself."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from raykeeper.apiserver.sources import SAFE_TOKEN_LENGTH, read_settings
from raykeeper.logs import Log, set_up_logs

log = Log("raykeeper.apiserver")


def run(arguments: Sequence[str], environment: Mapping[str, str] = os.environ, *, as_kuberay: bool = False) -> int:
    """Be the API server until it is told to end; the exit code.

    Raises `Misconfigured` while there is no log yet to tell it in.
    """
    settings = read_settings(arguments, environment, as_kuberay=as_kuberay)
    set_up_logs(settings.logs)
    if settings.ignored:
        log.warning("settings without effect", settings=settings.ignored)
    if settings.access.is_undecided:
        log.warning("anybody who reaches this address acts with all our rights; set --auth", http=str(settings.http))
    if any(len(token.token) < SAFE_TOKEN_LENGTH for token in settings.access.tokens):
        log.warning("a token is short enough to be guessed", characters_needed=SAFE_TOKEN_LENGTH)
    # Only now, so that a wrong setting is told before anything heavy is loaded.
    from raykeeper.apiserver.program import serve

    return serve(settings)
