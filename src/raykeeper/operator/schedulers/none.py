"""Kubernetes' own scheduler, which needs nothing: pods start one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from raykeeper.api.meta import JSON, Resource
from raykeeper.operator.schedulers.gang import Gang
from raykeeper.operator.schedulers.interface import Wait
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.violations import Violation


class NoScheduler:
    """Adds nothing. Schedulers that add little begin with this."""

    name = ""
    kinds: tuple[Resource[Any], ...] = ()

    def violations(self, owner: Owner) -> Sequence[Violation]:  # noqa: ARG002 - the interface
        return ()

    def warnings(self, owner: Owner) -> Sequence[Violation]:  # noqa: ARG002 - the interface
        return ()

    def objects(self, gang: Gang) -> Sequence[JSON]:  # noqa: ARG002 - the interface
        return ()

    def at_rest(self, gang: Gang) -> Sequence[JSON]:  # noqa: ARG002 - the interface
        return ()

    def emptied(self, found: JSON) -> JSON | None:  # noqa: ARG002 - the interface
        return None

    def waits(self, found: Iterable[JSON]) -> Wait | None:  # noqa: ARG002 - the interface
        return None

    def dress(self, gang: Gang, item: JSON, group: str) -> JSON:  # noqa: ARG002 - the interface
        return item
