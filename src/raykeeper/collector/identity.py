"""Which cluster and node a collector belongs to: the fields that all its records share."""

from __future__ import annotations

from dataclasses import dataclass

from raykeeper.layout.keys import SessionId
from raykeeper.layout.records import Role


@dataclass(frozen=True)
class Identity:
    """The cluster, and the pod beside whose Ray node the collector runs."""

    namespace: str
    cluster: str
    role: Role
    cluster_uid: str = ""
    owner_kind: str = ""
    owner_name: str = ""
    pod: str = ""
    pod_ip: str = ""
    hostname: str = ""
    collector_version: str = ""

    def session(self, name: str) -> SessionId:
        return SessionId(self.namespace, self.cluster, name)
