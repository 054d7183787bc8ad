"""A RayCluster spec under examination, also one inside a RayJob or RayService, with the paths of its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from raykeeper.api.meta import JSON
from raykeeper.api.podtemplates import env_var, ray_container
from raykeeper.api.raycluster import HeadGroupSpec, RayClusterSpec, WorkerGroupSpec
from raykeeper.operator.gates import FeatureGates, Gate
from raykeeper.operator.shared.violations import Violation, is_set


@dataclass(frozen=True)
class NodeGroup:
    """The head group or a worker group, where both are judged alike."""

    path: str
    spec: HeadGroupSpec | WorkerGroupSpec

    @property
    def pod_path(self) -> str:
        return f"{self.path}.template.spec"

    @property
    def container(self) -> JSON:
        """Its Ray container."""
        return ray_container(self.spec.template)

    @property
    def container_path(self) -> str:
        return f"{self.pod_path}.containers[0]"

    def forbid_env(self, name: str, cure: str) -> Iterator[Violation]:
        """A violation if the Ray container's environment has the variable, with a value or without."""
        if env_var(self.container, name):
            yield is_set(f"{self.container_path}.env[{name}]", cure)

    def forbid_ray_start_param(self, name: str, cure: str) -> Iterator[Violation]:
        """A violation if the parameter has a value."""
        if self.spec.ray_start_params.get(name):
            yield is_set(f"{self.path}.rayStartParams[{name}]", cure)


@dataclass(frozen=True)
class Candidate:
    """All that the rules look at."""

    spec: RayClusterSpec
    annotations: Mapping[str, str]
    """Those of the object that carries the spec."""
    gates: FeatureGates
    path: str = "spec"
    """Where the spec stands in that object."""

    @property
    def head(self) -> NodeGroup:
        return NodeGroup(f"{self.path}.headGroupSpec", self.spec.head_group_spec)

    @property
    def workers(self) -> list[tuple[str, WorkerGroupSpec]]:
        """Every worker group with its path."""
        return [(f"{self.path}.workerGroupSpecs[{i}]", group) for i, group in enumerate(self.spec.worker_group_specs)]

    @property
    def groups(self) -> list[NodeGroup]:
        """The head group, then the worker groups."""
        return [self.head, *(NodeGroup(path, group) for path, group in self.workers)]

    def needs_gate(self, field: str, gate: Gate) -> Iterator[Violation]:
        """A violation if the feature behind the field is turned off."""
        if not self.gates.is_on(gate):
            name = gate.value.name
            yield is_set(f"{self.path}.{field}", f"remove it, or start the operator with --feature-gates={name}=true")


Rule = Callable[[Candidate], Iterator[Violation]]
"""Yields what breaks one rule, nothing where it is kept."""
