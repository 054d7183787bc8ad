"""Which batch scheduler starts the pods of a cluster together. One per operator, as in KubeRay. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from raykeeper.errors import Misconfigured
from raykeeper.operator.schedulers.interface import Scheduler
from raykeeper.operator.schedulers.kai import Kai
from raykeeper.operator.schedulers.kubernetes_was import KubernetesWas
from raykeeper.operator.schedulers.none import NoScheduler
from raykeeper.operator.schedulers.scheduler_plugins import SchedulerPlugins
from raykeeper.operator.schedulers.volcano import Volcano
from raykeeper.operator.schedulers.yunikorn import YuniKorn

SCHEDULERS: Final[Mapping[str, Callable[[], Scheduler]]] = {
    scheduler.name: scheduler for scheduler in (NoScheduler, Volcano, YuniKorn, Kai, SchedulerPlugins, KubernetesWas)
}
BY_FLAG: Final = frozenset(SCHEDULERS) - {KubernetesWas.name}
"""The names that `--batch-scheduler` of KubeRay knows; a gate asks for the other one."""


def scheduler_named(name: str) -> Scheduler:
    """The scheduler of a name that `chosen_name` gave."""
    return SCHEDULERS[name]()


def chosen_name(setting: str, name: str, legacy_setting: str, *, is_legacy: bool) -> str:
    """The name of the scheduler that was asked for, empty for none.

    Raises `Misconfigured` for one that cannot be used, naming the setting that asked for it.
    """
    if name and is_legacy:
        raise Misconfigured(legacy_setting, True, f"{setting}={name!r} is given too; use only the latter")
    if name not in BY_FLAG:
        known = ", ".join(one for one in SCHEDULERS if one and one in BY_FLAG)
        raise Misconfigured(setting, name, f"there is no such scheduler; there are {known}")
    return Volcano.name if is_legacy else name
