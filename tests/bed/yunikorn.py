"""YuniKorn's scheduler on a control plane, as a process. Its admission controller is left out: our pods are dressed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import yaml

from bed.binaries import binary
from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.processes import Process
from bed.rest import Json, Rest
from bed.waiting import wait_until

NAMESPACE = "yunikorn"
PORT = 9080
"""Of its REST server; it cannot be chosen."""
START_SECONDS = 120.0
_QUEUES = {
    "partitions": [
        {
            "name": "default",
            "placementrules": [
                {"name": "provided", "create": True},
                {"name": "tag", "value": "namespace", "create": True},
            ],
            "queues": [{"name": "root", "submitacl": "*"}],
        }
    ]
}
"""The queue that a pod names, else one called after its namespace."""


@contextmanager
def yunikorn_on(plane: ControlPlane) -> Iterator[None]:
    """Until the end of the block; what was installed stays in the control plane, which is the caller's own."""
    plane.admin.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    settings = {"kubernetes.qps": "500", "kubernetes.burst": "1000", "service.schedulingInterval": "200ms"}
    for name, data in (("yunikorn-defaults", settings), ("yunikorn-configs", {"queues.yaml": yaml.safe_dump(_QUEUES)})):
        body: Json = {"metadata": {"name": name}, "data": data}
        plane.admin.post(f"/api/v1/namespaces/{NAMESPACE}/configmaps", body)
    variables = {"KUBECONFIG": str(plane.admin_kubeconfig), "NAMESPACE": NAMESPACE}
    process = Process("yunikorn", [binary("yunikorn")], plane.folder, variables)
    process.start()
    try:
        rest = Rest(f"http://{LOOPBACK}:{PORT}")
        health = "/ws/v1/scheduler/healthcheck"
        wait_until(f"YuniKorn is ready (log: {process.log_file})", lambda: rest.answers(health), START_SECONDS)
        yield
    finally:
        process.kill()
