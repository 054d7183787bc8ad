"""What the process of a container may do on its node."""

from __future__ import annotations

from dataclasses import dataclass

from raykeeper.client.python_apiserver_client.params.wire import Parameters, wire


@dataclass
class Capabilities(Parameters):
    """Linux capabilities beside the usual ones, and those that are taken away."""

    add: list[str] | None = wire("add", default=None)
    drop: list[str] | None = wire("drop", default=None)


@dataclass
class SecurityContext(Parameters):
    """As far as V1 has it."""

    capabilities: Capabilities | None = wire("capabilities", Capabilities.from_dict, default=None)
    privileged: bool | None = wire("privileged", default=None)


security_context_decoder = SecurityContext.from_dict
