"""A real control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, with TLS and RBAC.

Everything about it lies in one folder, so any process can take hold of it: `create` makes a new one, `attach` finds
one that another process made. All calls block for as long as they need; async tests call them in a thread.
"""

from __future__ import annotations

import base64
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path

import msgspec

from bed import daemons
from bed.binaries import BINARIES, binary, build, older
from bed.daemons import LOOPBACK, ControlPlaneSettings, Flags, Ports, command_line
from bed.errors import BedError
from bed.keys import ADMINISTRATORS, client_tls, key_ring, make_keys
from bed.pki import A_YEAR, Authority, KeyPair, kubeconfig_text, private_key
from bed.ports import free_port
from bed.processes import Process
from bed.rest import Rest
from bed.tokens import service_account_token
from bed.waiting import wait_until

START_SECONDS = 180.0  # four are usual; on a machine busy with builds it took more than 60

_COMPACTION_KEY = base64.b64encode(b"bed/compaction").decode()  # outside /registry/, so Kubernetes does not see it


@dataclass(frozen=True)
class Layout:
    """What makes one control plane this one; kept as a file in its folder."""

    settings: ControlPlaneSettings
    ports: Ports

    @staticmethod
    def file(folder: Path) -> Path:
        return folder / "control-plane.json"


class ControlPlane:
    """Handle of one control plane. `etcd`, `apiserver`, `controller_manager` and `scheduler` are its processes.

    Faults are what can be done to them: `apiserver.kill()`, `etcd.pause()`, `apiserver.start()` and so on; they come
    back with the same data on the same ports. After a start, `wait_ready()` returns once requests succeed.
    """

    def __init__(self, folder: Path, layout: Layout) -> None:
        self.folder = folder
        self.settings = settings = layout.settings
        self.ports = ports = layout.ports
        self.keys = ring = key_ring(folder / "pki")
        manager, scheduler = self._kubeconfig_file("controller_manager"), self._kubeconfig_file("scheduler")
        self.etcd = self._process("etcd", daemons.etcd_flags(settings, ports, folder / "etcd"))
        self.apiserver = self._process(
            "kube-apiserver", daemons.apiserver_flags(settings, ports, ring), daemons.apiserver_environment(settings)
        )
        self.controller_manager = self._process(
            "kube-controller-manager", daemons.controller_manager_flags(settings, ports, ring, manager)
        )
        self.scheduler = self._process("kube-scheduler", daemons.scheduler_flags(ports, ring, scheduler))
        self._processes = (self.etcd, self.apiserver, self.controller_manager, self.scheduler)

    @classmethod
    def create(cls, folder: Path, settings: ControlPlaneSettings | None = None) -> ControlPlane:
        """A new one in `folder`, with keys and ports of its own; `up()` starts it."""
        settings = settings or ControlPlaneSettings()
        ring = make_keys(folder / "pki", settings)
        layout = Layout(settings, _free_ports(settings))
        plane = cls(folder, layout)
        for name in ("admin", "controller_manager", "scheduler"):
            plane._write_kubeconfig(name, getattr(ring, name).read())
        # Last, and whole or not at all: with this file the folder counts as a control plane.
        unfinished = Layout.file(folder).with_suffix(".new")
        unfinished.write_bytes(msgspec.json.encode(layout))
        unfinished.replace(Layout.file(folder))
        return plane

    @classmethod
    def find_or_create(cls, folder: Path, settings: ControlPlaneSettings | None = None) -> ControlPlane:
        """The one in `folder`, created when there is none yet. Callers hold a lock where others may do the same."""
        return cls.attach(folder) if Layout.file(folder).exists() else cls.create(folder, settings)

    @classmethod
    def attach(cls, folder: Path) -> ControlPlane:
        """The one that was created in `folder` before, running or not."""
        try:
            return cls(folder, msgspec.json.decode(Layout.file(folder).read_bytes(), type=Layout))
        except (FileNotFoundError, msgspec.DecodeError) as cause:
            raise BedError(f"there is no control plane in {folder}") from cause

    @property
    def server(self) -> str:
        """URL of the API server."""
        return f"https://{self.settings.address}:{self.ports.apiserver}"

    @cached_property
    def admin(self) -> Rest:
        """Requests to the API server as an administrator."""
        return Rest(self.server, client_tls(self.keys, self.keys.admin))

    @property
    def admin_kubeconfig(self) -> Path:
        """Kubeconfig of an administrator; its path never changes."""
        return self._kubeconfig_file("admin")

    @property
    def alive(self) -> bool:
        """Whether all four daemons run."""
        return all(process.alive for process in self._processes)

    def up(self) -> None:
        """Start what does not run, and return once pods could be created."""
        build([self._binary(process.name) for process in self._processes])
        self.etcd.start()
        self.apiserver.start()
        self.wait_ready()
        self.controller_manager.start()
        self.scheduler.start()
        self._wait(self.controller_manager, self.ports.controller_manager)
        self._wait(self.scheduler, self.ports.scheduler)
        self.wait_for("/api/v1/namespaces/default/serviceaccounts/default")

    def down(self) -> None:
        """Stop all four; data and keys stay in the folder."""
        # Clients first, so that no daemon spends its last seconds retrying against one that is gone.
        for process in reversed(self._processes):
            process.stop()

    def wait_ready(self, timeout: float = START_SECONDS) -> None:
        """Return once the API server answers and can reach etcd."""
        self._wait(self.apiserver, self.ports.apiserver, "/readyz", self.settings.address, timeout)

    def wait_for(self, path: str, timeout: float = START_SECONDS) -> None:
        """Return once the API server has an object at `path`."""
        wait_until(path, lambda: self.admin.answers(path), timeout)

    def wait_for_right(self, user: str, verb: str, resource: str, group: str = "", namespace: str = "") -> None:
        """Return once a right that was granted counts: the API server learns of roles and bindings by watches."""
        asked = {"verb": verb, "resource": resource, "group": group, "namespace": namespace}
        review = {"spec": {"user": user, "resourceAttributes": asked}}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        wait_until(f"{user} may {verb} {resource}", lambda: self.admin.post(path, review)["status"]["allowed"])

    def restart_apiserver(self) -> None:
        """Kill -9 the API server, start it again and return once it answers."""
        self.apiserver.kill()
        self.apiserver.start()
        self.wait_ready()

    def compact_etcd(self) -> int:
        """Forget etcd's history up to now and return that revision.

        By itself this is hidden from clients: Kubernetes 1.36 answers old watches from its watch cache and old
        continue tokens from snapshots of it. Both get 410 with `watch_cache=False` in the settings, or once the API
        server has started anew (`forget_history`).
        """
        etcd = Rest(f"http://{LOOPBACK}:{self.ports.etcd}")
        # etcd still serves a watch from the compacted revision itself, so two writes move that beyond "up to now".
        for _ in range(2):
            now = etcd.post("/v3/kv/put", {"key": _COMPACTION_KEY, "value": ""})["header"]["revision"]
        etcd.post("/v3/kv/compaction", {"revision": now, "physical": True})
        return int(now)

    def forget_history(self) -> None:
        """Make every watch and continue token from before get 410: compact etcd, then crash and start the API server.

        A restart alone already expires watches (the new cache starts at its first list), but not continue tokens.
        """
        self.compact_etcd()
        self.restart_apiserver()

    def kubeconfig(
        self,
        user: str = "admin",
        groups: Sequence[str] = (ADMINISTRATORS,),
        *,
        token: str | None = None,
        lifetime: timedelta = A_YEAR,
        server: str | None = None,
        namespace: str = "default",
    ) -> Path:
        """A new kubeconfig for `user` in `groups`, known by a certificate; or by `token` when one is given.

        A negative `lifetime` gives an expired certificate; `server` is another way to the API server, such as a proxy.
        """
        pair = None if token else Authority.load(self.keys.authority).issue(user, groups, lifetime=lifetime)
        name = f"{user.replace(':', '-')}-{uuid.uuid4().hex[:8]}"
        return self._write_kubeconfig(name, pair, token, server, namespace)

    def token(self, namespace: str, service_account: str = "default", seconds: int = 3600) -> str:
        """A token for a service account from the TokenRequest API (which gives none for less than 600 seconds)."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token"
        answer = self.admin.post(path, {"spec": {"expirationSeconds": seconds}})
        return str(answer["status"]["token"])

    def expired_token(self, namespace: str, service_account: str = "default") -> str:
        """A token of a service account that was valid until a minute ago."""
        account = self.admin.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}")
        key = private_key(self.keys.service_accounts.key.read_bytes())
        return service_account_token(key, namespace, service_account, account["metadata"]["uid"], expires_in=-60)

    def kubectl(self, *arguments: str, stdin: str | None = None, kubeconfig: Path | None = None) -> str:
        """What kubectl prints, as an administrator unless another kubeconfig is given."""
        command = [str(binary("kubectl")), f"--kubeconfig={kubeconfig or self.admin_kubeconfig}", *arguments]
        outcome = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=120)
        if outcome.returncode != 0:
            raise BedError(f"kubectl {' '.join(arguments)}: {outcome.stderr.strip()}")
        return outcome.stdout

    def _process(self, name: str, flags: Flags, environment: Mapping[str, str] | None = None) -> Process:
        extra = tuple(self.settings.extra_flags.get(name, ()))
        command: list[str | Path] = [BINARIES[self._binary(name)].path, *command_line(flags, extra)]
        return Process(name, command, self.folder, environment)

    def _binary(self, daemon: str) -> str:
        return older(daemon) if self.settings.older and older(daemon) in BINARIES else daemon

    def _kubeconfig_file(self, name: str) -> Path:
        return self.folder / "kubeconfig" / f"{name}.yaml"

    def _write_kubeconfig(
        self,
        name: str,
        pair: KeyPair | None,
        token: str | None = None,
        server: str | None = None,
        namespace: str = "default",
    ) -> Path:
        file = self._kubeconfig_file(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        authority = self.keys.authority.certificate.read_bytes()
        file.write_text(kubeconfig_text(server or self.server, authority, pair, token, namespace))
        return file

    def _wait(
        self, process: Process, port: int, path: str = "/healthz", host: str = LOOPBACK, timeout: float = START_SECONDS
    ) -> None:
        """Return once `process` answers `path`; its log's end is in the error when it does not."""
        daemon = Rest(f"https://{host}:{port}", client_tls(self.keys, self.keys.admin))

        def answers_or_ended() -> bool:
            return daemon.answers(path) or not process.alive

        wait_until(f"{process.name} ready (log: {process.log_file})", answers_or_ended, timeout)
        if not process.alive:
            raise BedError(f"{process.name} ended while starting:\n{process.last_lines()}")


def _free_ports(settings: ControlPlaneSettings) -> Ports:
    return Ports(
        etcd=free_port(),
        etcd_peer=free_port(),
        apiserver=settings.secure_port or free_port(settings.address),
        controller_manager=free_port(),
        scheduler=free_port(),
    )
