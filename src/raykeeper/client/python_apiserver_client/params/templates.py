"""Compute templates: what one pod of a group gets, under a name."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from raykeeper.client.python_apiserver_client.params.wire import Parameters, either, listed, wire


class TolerationOperation(enum.Enum):
    Exists = "Exists"
    Equal = "Equal"


class TolerationEffect(enum.Enum):
    NoSchedule = "NoSchedule"
    PreferNoSchedule = "PreferNoSchedule"
    NoExecute = "NoExecute"


@dataclass
class Toleration(Parameters):
    """Lets pods run on nodes with a taint."""

    key: str = wire("key")
    operator: TolerationOperation = wire("operator", TolerationOperation, absent=TolerationOperation.Exists)
    effect: TolerationEffect = wire("effect", TolerationEffect, absent=TolerationEffect.NoSchedule)
    value: str | None = wire("value", default=None)


toleration_decoder = Toleration.from_dict


@dataclass
class Template(Parameters):
    """A compute template; `memory` is in GiB. For parts of a CPU there is `raykeeper.client`."""

    name: str = wire("name")
    namespace: str = wire("namespace")
    cpu: int = wire("cpu", int, absent=0)
    memory: int = wire("memory", int, absent=0)
    gpu: int = wire("gpu", int, default=0, absent=0, is_sent=lambda gpu: gpu > 0)
    gpu_accelerator: str | None = wire("gpuAccelerator", default=None)
    extended_resources: dict[str, int] | None = wire("extendedResources", default=None)
    tolerations: list[Toleration] | None = wire("tolerations", listed(toleration_decoder), default=None)
    node_selector: dict[str, str] | None = wire("nodeSelector", default=None)
    """Taken by our API server alone."""


template_decoder = Template.from_dict


def templates_decoder(dct: Mapping[str, Any]) -> list[Template]:
    """Those of a list; an answer without templates has no list in it."""
    return [template_decoder(one) for one in either(dct, "computeTemplates", [])]
