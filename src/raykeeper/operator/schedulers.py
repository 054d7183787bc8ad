"""Which batch scheduler starts the pods of a cluster together. One per operator, as in KubeRay. Pure."""

from __future__ import annotations

from raykeeper.errors import Misconfigured

SCHEDULERS = ("volcano", "yunikorn", "kai-scheduler", "scheduler-plugins")
"""The names that `--batch-scheduler` knows; what each does will have its own module beside this one."""

MISSING = "this version works with no batch scheduler"


def check_scheduler(setting: str, name: str, legacy_setting: str, *, is_legacy: bool) -> None:
    """Raises `Misconfigured` for any scheduler that cannot be used, naming the setting that asked for it."""
    if name and is_legacy:
        raise Misconfigured(legacy_setting, True, f"{setting}={name!r} is given too; use only the latter")
    if name and name not in SCHEDULERS:
        raise Misconfigured(setting, name, f"there is no such scheduler; there are {', '.join(SCHEDULERS)}")
    if name:
        raise Misconfigured(setting, name, MISSING)
    if is_legacy:
        raise Misconfigured(legacy_setting, True, MISSING)
