"""The operator as a process: settings, logs, listeners, signals and exit codes."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence

import uvloop

from raykeeper.clock import SystemClock
from raykeeper.errors import Misconfigured, RaykeeperError
from raykeeper.kube.client import Kube
from raykeeper.kube.connect.connection import load_connection
from raykeeper.kube.controllers.failures import chief_cause
from raykeeper.kube.leader.lease import new_identity
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.kube.serving.server import Serving
from raykeeper.logs import Log, set_up_logs
from raykeeper.operator.controllers import CONTROLLERS, ControllerRow
from raykeeper.operator.manager import Manager
from raykeeper.operator.metrics import new_registry
from raykeeper.operator.program import Program
from raykeeper.operator.settings import OperatorSettings
from raykeeper.operator.sources import read_settings

log = Log("raykeeper.operator")

STOPPED, FAILED, MISCONFIGURED = 0, 1, 2


def run(
    arguments: Sequence[str],
    environment: Mapping[str, str] = os.environ,
    rows: Sequence[ControllerRow] = CONTROLLERS,
) -> int:
    """Be the operator until a signal or a failure ends it; the exit code. Each failure is told in one line.

    Raises `Misconfigured` while there is no log yet to tell it in.
    """
    settings = read_settings(arguments, environment)
    set_up_logs(settings.logs)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_operate(settings, rows))
    except asyncio.CancelledError:
        log.info("operator stopped")
        return STOPPED
    except Exception as exc:
        return _failed(chief_cause(exc))
    raise AssertionError("the operator ended though nothing had stopped it")


async def _operate(settings: OperatorSettings, rows: Sequence[ControllerRow]) -> None:
    _stop_on_signals()
    clock, metrics = SystemClock(), KubeMetrics(new_registry())
    client = settings.client
    connection = await load_connection(client.kubeconfig, clock=clock)
    serving = Serving(settings.serving, metrics.registry)
    kube = Kube(connection, metrics=metrics, qps=client.qps, burst=client.burst, clock=clock)
    async with serving, kube:
        await Manager(Program(settings, kube, serving, metrics, clock, new_identity()), rows).run()


def _stop_on_signals() -> None:
    """Cancel this task at the first SIGTERM or SIGINT; a second one ends the process as it would any other."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def stop() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        if task is not None:
            task.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)


def _failed(cause: Exception) -> int:
    """Tell what ended the operator, while it is being handled: in one line, or as a bug with its stack trace."""
    if not isinstance(cause, RaykeeperError):
        log.exception("operator ended by a bug", error=repr(cause))
        return FAILED
    log.error("operator ended", error=str(cause))
    return MISCONFIGURED if isinstance(cause, Misconfigured) else FAILED
