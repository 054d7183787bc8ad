"""The container runtime, with its image store in the cache: images stay from one node to the next."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from bed.cache import cache_folder
from bed.node.commands import run, succeeds
from bed.node.enclosure import Enclosure
from bed.node.network import CNI_PLUGINS, cni_configuration
from bed.node.settings import CONTAINERD_SOCKET, MACHINE_FOLDER, PAUSE_IMAGE
from bed.progress import step
from bed.waiting import wait_until

STATE = MACHINE_FOLDER / "containerd"
KUBERNETES_NAMESPACE = "k8s.io"  # containerd's own word for what belongs to a kubelet
START_SECONDS = 120.0
IMPORT_TIMEOUT_SECONDS = 300


class Containerd:
    """containerd inside an enclosure."""

    def __init__(self, enclosure: Enclosure, folder: Path) -> None:
        self._folder = folder
        self._configuration = folder / "containerd.toml"
        self.store = cache_folder() / "containerd"
        self.process = enclosure.daemon("containerd", ["containerd", "--config", self._configuration])

    def up(self) -> None:
        """Start it and return once it answers; containers that ran on after a crash are taken up again."""
        self._write_configuration()
        self.process.start()
        wait_until(f"containerd answers (log: {self.process.log_file})", self._answers, START_SECONDS)

    def forget_containers(self) -> None:
        """Remove all containers and what they wrote from the store: those of nodes that ended before.

        Done when a node starts. Ending one is SIGKILL to all of it, which is quick and the same in every state.
        """
        containers = self._ctr("containers", "list", "--quiet").split()
        if containers:
            self._ctr("containers", "remove", *containers)
        rows = [line.split() for line in self._ctr("snapshots", "list").splitlines()[1:]]
        if written := [row[0] for row in rows if row[-1] == "Active"]:
            self._ctr("snapshots", "remove", *written)
        if containers:
            self.process.stop()  # the part that serves the kubelet has read them already
            self.up()

    def import_archive(self, archive: Path) -> None:
        """Put the images of an archive into the store; no time is spent when it was the last one imported this way."""
        # Only the last: another checkout's archive has images of the same names.
        last_imported = self.store / "last-imported"
        if last_imported.exists() and last_imported.read_text() == archive.name:
            return
        with step(f"importing {archive.name}"):
            self.import_anew(archive)
        last_imported.write_text(archive.name)

    def import_anew(self, archive: Path) -> None:
        """Put the images of an archive into the store, over those of the same name."""
        self._ctr("images", "import", "--digests=false", str(archive), timeout_seconds=IMPORT_TIMEOUT_SECONDS)

    def image_names(self) -> list[str]:
        """The full names of all images in the store."""
        return self._ctr("images", "list", "--quiet").split()

    def _answers(self) -> bool:
        return CONTAINERD_SOCKET.exists() and succeeds(["ctr", "--address", str(CONTAINERD_SOCKET), "version"])

    def _ctr(self, *arguments: str, timeout_seconds: float = 60) -> str:
        command = ["ctr", "--address", str(CONTAINERD_SOCKET), "--namespace", KUBERNETES_NAMESPACE, *arguments]
        return run(command, timeout_seconds=timeout_seconds)

    def _write_configuration(self) -> None:
        networks = self._folder / "cni"
        networks.mkdir(parents=True, exist_ok=True)
        self.store.mkdir(parents=True, exist_ok=True)
        (networks / "10-bed.conflist").write_text(json.dumps(cni_configuration(self._folder / "cni-leases"), indent=2))
        self._configuration.write_text(containerd_configuration(self.store, networks))


def remove_volatile_state() -> None:
    """What containerd keeps outside its store; a dead one's is of no use to the next."""
    shutil.rmtree(STATE, ignore_errors=True)
    for socket in MACHINE_FOLDER.glob(f"{CONTAINERD_SOCKET.name}*"):
        socket.unlink(missing_ok=True)


def containerd_configuration(store: Path, networks: Path) -> str:
    """containerd's configuration file."""
    return f"""version = 2
root = "{store}"
state = "{STATE}"
# They look for file systems, folders and collectors that are not there, and warn.
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.internal.v1.tracing",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp",
]

[grpc]
  address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  disable_apparmor = true
  # Without CAP_SYS_RESOURCE nobody may lower a process's OOM score below its parent's, and every sandbox would die.
  restrict_oom_score_adj = true
  disable_tcp_service = true
  stream_server_address = "127.0.0.1"
  # Network namespaces are mounted below `state`, so that the machine's list of them stays its own.
  netns_mounts_under_state_dir = true

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI_PLUGINS}"
    conf_dir = "{networks}"
"""
