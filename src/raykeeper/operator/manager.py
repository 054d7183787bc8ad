"""The start of the operator, step by step: what it waits for, what it refuses, and what it says."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.kube.leader.lookout import Lookout
from raykeeper.logs import Log
from raykeeper.operator.api_server_facts import ApiServerFacts, survey, wait_for_kinds
from raykeeper.operator.controllers import ControllerRow, unattended
from raykeeper.operator.gates import Gate
from raykeeper.operator.program import Program
from raykeeper.operator.schedulers.choice import scheduler_named
from raykeeper.operator.schedulers.interface import Scheduler
from raykeeper.operator.settings import HistorySettings
from raykeeper.operator.shared.history import History
from raykeeper.operator.watches import choose_scope
from raykeeper.operator.work import Work

log = Log("raykeeper.operator")


class Manager:
    """Brings the operator to work. Not ready, and able to say why, until the caches can be filled."""

    def __init__(self, program: Program, rows: Sequence[ControllerRow]) -> None:
        self._program = program
        self._rows = rows
        self._awaited: str | None = "the API server"
        program.serving.ready.add("start", lambda: f"waits for {self._awaited}" if self._awaited else None)

    async def run(self) -> None:
        """Work until cancelled. Raises what makes it impossible to start or to go on."""
        program = self._program
        scheduler = scheduler_named(program.settings.batch_scheduler)
        namespaces = program.settings.leadership.covers.namespaces
        api_server = await survey(program.kube, program.clock, scheduler.kinds, namespaces)
        program.settings.gates.check(api_server.kubernetes)
        rows = [row for row in self._rows if row.is_wanted(program.settings, api_server)]
        self._tell(api_server, rows)
        _tell_missing(scheduler, api_server)
        self._awaited = "custom resource definitions"
        kinds = dict.fromkeys([RAY_CLUSTERS, *(row.reconciles for row in rows)])
        await wait_for_kinds(program.kube, program.clock, kinds)
        self._awaited = "a sign that no other installation lives"
        lookout = Lookout(program.kube, program.ours, program.clock)
        await lookout.ensure_alone()
        followed = [watch.kind.resource for row in rows for watch in row.watches_in(api_server)]
        scope = await choose_scope(program.kube, namespaces, followed, api_server.kubernetes)
        work = Work(program, api_server, rows, lookout, scope)
        self._awaited = None
        await work.run()

    def _tell(self, api_server: ApiServerFacts, rows: Sequence[ControllerRow]) -> None:
        settings, connection = self._program.settings, self._program.kube.connection
        log.info(
            "operator starts",
            version=version("raykeeper"),
            server=connection.server,
            source=connection.source,
            kubernetes=".".join(map(str, api_server.kubernetes)),
            openshift=api_server.is_openshift,
            namespaces=str(settings.leadership.covers),
            gates={gate.value.name: is_on for gate, is_on in settings.gates.switched.items()},
        )
        if settings.ignored:
            log.warning("flags without effect", flags=settings.ignored)
        problem = History(settings.history).problem
        if settings.history != HistorySettings() and problem:
            log.warning("history by annotation cannot be kept", problem=problem)
        if settings.gates.is_on(Gate.RAYCRONJOB) and not api_server.has_raycronjobs:
            log.warning("RayCronJobs are not reconciled: their custom resource definition is not installed")
        if kinds := unattended(rows):
            log.warning("objects of these kinds are not reconciled by this version", kinds=kinds)


def _tell_missing(scheduler: Scheduler, api_server: ApiServerFacts) -> None:
    """RayClusters say it too, in a condition, for as long as it lasts."""
    missing = [f"{kind} ({kind.version})" for kind in scheduler.kinds if kind not in api_server.scheduler_kinds]
    if missing:
        log.warning(
            "the batch scheduler is not installed: pods wait for its kinds", scheduler=scheduler.name, missing=missing
        )
