"""The start of the operator, step by step: what it waits for, what it refuses, and what it says."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.kube.leader.lookout import Lookout
from raykeeper.logs import Log
from raykeeper.operator.controllers import ControllerRow, unattended
from raykeeper.operator.program import Program
from raykeeper.operator.surroundings import Surroundings, survey, wait_for_kinds
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
        surroundings = await survey(program.kube, program.clock)
        rows = [row for row in self._rows if row.is_wanted(program.settings, surroundings)]
        self._tell(surroundings, rows)
        self._awaited = "custom resource definitions"
        kinds = dict.fromkeys([RAY_CLUSTERS, *(row.reconciles for row in rows)])
        await wait_for_kinds(program.kube, program.clock, kinds)
        self._awaited = "a sign that no other installation lives"
        lookout = Lookout(program.kube, program.ours, program.clock)
        await lookout.ensure_alone()
        work = Work(program, surroundings, rows, lookout)
        self._awaited = None
        await work.run()

    def _tell(self, surroundings: Surroundings, rows: Sequence[ControllerRow]) -> None:
        settings, connection = self._program.settings, self._program.kube.connection
        log.info(
            "operator starts",
            version=version("raykeeper"),
            server=connection.server,
            source=connection.source,
            kubernetes=".".join(map(str, surroundings.kubernetes)),
            openshift=surroundings.is_openshift,
            namespaces=str(settings.leadership.covers),
            gates={gate.value.name: is_on for gate, is_on in settings.gates.switched.items()},
        )
        if settings.ignored:
            log.warning("flags without effect", flags=settings.ignored)
        if kinds := unattended(rows):
            log.warning("objects of these kinds are not reconciled by this version", kinds=kinds)
