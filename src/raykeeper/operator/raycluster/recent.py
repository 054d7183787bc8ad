"""What our own writes made of pods, laid over what the cache shows until it shows them too.

Else a pass that comes before the watch would say that a pod is missing which was made a moment ago, and the next pass
take it back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from raykeeper.api.meta import ObjectKey
from raykeeper.api.raycluster import RayCluster
from raykeeper.operator.raycluster.pod import Pod


@dataclass
class RecentPods:
    """Pods made and deleted of late, by cluster."""

    is_shown: Callable[[ObjectKey, str], bool]
    """Whether the cache shows all we did to a group of a cluster."""
    _pods: dict[ObjectKey, tuple[str, list[Pod]]] = field(default_factory=dict)

    def remember(self, cluster: RayCluster, pods: Sequence[Pod]) -> None:
        """Pods as this pass left them: made, or with the time of their end."""
        if pods:
            self._pods[cluster.key] = (cluster.metadata.uid, [*self._of(cluster), *pods])

    def overlay(self, cluster: RayCluster, cached: Sequence[Pod]) -> list[Pod]:
        """The pods of the cache, with what it does not show yet."""
        recent = {pod.uid: pod for pod in self._of(cluster) if not self.is_shown(cluster.key, pod.tracked_as)}
        if not recent:
            self.forget(cluster.key)
            return list(cached)
        known = {pod.uid for pod in cached}
        made = [pod for pod in recent.values() if pod.uid not in known and not pod.is_terminating]
        return [*(_later(pod, recent.get(pod.uid)) for pod in cached), *made]

    def shown(self, key: ObjectKey, uid: str, *, is_going: bool) -> None:
        """The cache shows the pod, or that it goes: from now on its word is newer, also when it has the pod no more."""
        owner, pods = self._pods.get(key, ("", []))
        self._pods[key] = (owner, [pod for pod in pods if pod.uid != uid or (pod.is_terminating and not is_going)])
        if not self._pods[key][1]:
            self.forget(key)

    def forget(self, key: ObjectKey) -> None:
        """The cluster is gone, or there is nothing left to remember."""
        self._pods.pop(key, None)

    def _of(self, cluster: RayCluster) -> list[Pod]:
        uid, pods = self._pods.get(cluster.key, ("", []))
        return pods if uid == cluster.metadata.uid else []


def _later(cached: Pod, recent: Pod | None) -> Pod:
    """The cache's word, unless it does not know yet that the pod was deleted."""
    return recent if recent is not None and recent.is_terminating and not cached.is_terminating else cached
