"""Environment variables of containers."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from raykeeper.client.python_apiserver_client.params.wire import Parameters, mapped, numbered, other_name, wire


class EnvVarSource(enum.Enum):
    CONFIGMAP = 0
    SECRET = 1
    RESOURCE_FIELD = 2
    FIELD = 3


@dataclass
class EnvVarFrom(Parameters):
    """Where a value is: `key` of the ConfigMap or Secret `name`, a resource of a container, or a field of the pod."""

    source: EnvVarSource = wire("source", numbered(EnvVarSource), absent=EnvVarSource.CONFIGMAP)
    name: str = wire("name", absent="")
    key: str = wire("key", absent="")


env_var_from_decoder = EnvVarFrom.from_dict


@dataclass
class EnvironmentVariables(Parameters):
    """Values by name, and places of values by name."""

    key_value: dict[str, str] | None = wire("values", default=None)
    from_ref: dict[str, EnvVarFrom] | None = wire("valuesFrom", mapped(env_var_from_decoder), default=None)

    key_val = other_name("key_value")


environment_variables_decoder = EnvironmentVariables.from_dict


def any_environment_variables(dct: Mapping[str, Any]) -> EnvironmentVariables | None:
    """Those of a group; servers write an empty object where there are none."""
    return environment_variables_decoder(dct) if dct else None
