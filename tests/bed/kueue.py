"""Kueue on a control plane, installed by its own manifests but run as a process: it queues our RayClusters.

Its webhooks are called through a Service whose external name is this machine, so that it serves with the certificate
that it made for itself.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import yaml

from bed.binaries import BINARIES, binary
from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.golang import module_folder
from bed.ports import free_port
from bed.processes import Process
from bed.rest import Json, Rest
from bed.waiting import wait_until

VERSION = BINARIES["kueue"].version
NAMESPACE = "kueue-system"
_SERVICE, _SECRET = "kueue-webhook-service", "kueue-webhook-server-cert"
_GROUPS = {"kueue.x-k8s.io", "ray.io"}
"""Whose webhooks are installed; those of pods and Jobs would only slow other tests."""
_CONVERTED = ("localqueues", "clusterqueues", "cohorts", "workloads", "multikueueclusters")
"""CRDs into which Kueue insists to write its authority."""
START_SECONDS = 120.0  # it makes its certificates first, and looks for their files at growing intervals


class Kueue:
    """One Kueue, with the settings of its configuration file beyond those that every one here has."""

    def __init__(self, plane: ControlPlane, settings: Mapping[str, Any]) -> None:
        self._plane = plane
        self._folder = plane.folder / "kueue"
        self._certificates = self._folder / "certificates"
        self._webhook_port, self._probe_port = free_port(), free_port()
        self._settings = dict(settings)
        self.process = Process("kueue", [binary("kueue"), *self._flags()], plane.folder, self._variables())

    def up(self) -> None:
        """Install it and return once it is ready."""
        self._certificates.mkdir(parents=True, exist_ok=True)
        (self._folder / "config.yaml").write_text(yaml.safe_dump(self._configuration()))
        self._plane.kubectl("apply", "--server-side", "--filename=-", stdin=yaml.safe_dump_all(self._objects()))
        self.process.start()
        wait_until("Kueue has made its certificates", self._mount_certificates, START_SECONDS)
        probe = Rest(f"http://{LOOPBACK}:{self._probe_port}")
        wait_until(f"Kueue is ready (log: {self.process.log_file})", lambda: probe.answers("/readyz"), START_SECONDS)

    def _flags(self) -> list[str]:
        # The visibility server has a port of its own, which cannot be chosen.
        return [
            f"--config={self._folder / 'config.yaml'}",
            "--feature-gates=VisibilityOnDemand=false",
            "--zap-log-level=2",
        ]

    def _variables(self) -> dict[str, str]:
        return {"KUBECONFIG": str(self._plane.admin_kubeconfig)}

    def _configuration(self) -> Json:
        return {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "kind": "Configuration",
            "health": {"healthProbeBindAddress": f"{LOOPBACK}:{self._probe_port}"},
            "metrics": {"bindAddress": f"{LOOPBACK}:{free_port()}"},
            "webhook": {"host": LOOPBACK, "port": self._webhook_port, "certDir": str(self._certificates)},
            "leaderElection": {"leaderElect": False},
            "integrations": {"frameworks": ["ray.io/raycluster", "ray.io/rayjob"]},
            **self._settings,
        }

    def _mount_certificates(self) -> bool:
        """As the kubelet mounts a Secret."""
        secret = self._plane.admin.get(f"/api/v1/namespaces/{NAMESPACE}/secrets/{_SECRET}")
        for name, text in secret.get("data", {}).items():
            (self._certificates / name).write_bytes(base64.b64decode(text))
        return (self._certificates / "tls.crt").exists()

    def _objects(self) -> Iterator[Json]:
        config = module_folder("sigs.k8s.io/kueue", VERSION) / "config" / "components"
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        yield {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": _SECRET, "namespace": NAMESPACE}}
        here = {"type": "ExternalName", "externalName": "localhost"}
        yield {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": _SERVICE, "namespace": NAMESPACE},
            "spec": here,
        }
        for file in sorted((config / "crd" / "bases").glob("*.yaml")):
            yield self._converted(yaml.safe_load(file.read_text()))
        for hooks in yaml.safe_load_all((config / "webhook" / "manifests.yaml").read_text()):
            yield self._pointed_here(hooks)

    def _converted(self, crd: Json) -> Json:
        if crd["spec"]["names"]["plural"] in _CONVERTED:
            webhook = {"clientConfig": {"service": self._service("/convert")}, "conversionReviewVersions": ["v1"]}
            crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        return crd

    def _pointed_here(self, configuration: Json) -> Json:
        configuration["metadata"]["name"] = f"kueue-{configuration['metadata']['name']}"
        hooks = [hook for hook in configuration["webhooks"] if set(hook["rules"][0]["apiGroups"]) <= _GROUPS]
        for hook in hooks:
            hook["clientConfig"] = {"service": self._service(hook["clientConfig"]["service"]["path"])}
        return {**configuration, "webhooks": hooks}

    def _service(self, path: str) -> Json:
        return {"namespace": NAMESPACE, "name": _SERVICE, "path": path, "port": self._webhook_port}


@contextmanager
def kueue_on(plane: ControlPlane, settings: Mapping[str, Any]) -> Iterator[Kueue]:
    """Kueue until the end of the block; what it installed stays in the control plane, which is the caller's own."""
    kueue = Kueue(plane, settings)
    try:
        kueue.up()
        yield kueue
    finally:
        kueue.process.kill()
