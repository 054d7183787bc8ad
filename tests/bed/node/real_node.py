"""One real node for a control plane: `prepare_machine`, then the control plane, then `RealNode.up()`.

`node_cluster` does all three. Taking down needs nothing but the folder, so it works whatever a crash has left.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bed.binaries import build
from bed.control_plane import ControlPlane
from bed.errors import BedError
from bed.node.claim import drop_claim, is_anothers, take_claim
from bed.node.commands import run
from bed.node.containerd import Containerd, remove_volatile_state
from bed.node.enclosure import Enclosure
from bed.node.image import standard_images
from bed.node.kubelet import kubelet_command, write_kubelet_files
from bed.node.manifests import NODE_MANIFESTS
from bed.node.network import lay_node_address, lay_pod_network, remove_network
from bed.node.packages import install_missing_packages
from bed.node.services import coredns_command, dns_trouble, kube_proxy_command, proxy_trouble, write_service_files
from bed.node.settings import CLAIMED_CPUS, MACHINE_FOLDER, NODE_NAME, NODE_SETTINGS
from bed.node.sysctls import restore_sysctls, save_sysctls
from bed.node.why_not import missing_modules, why_not
from bed.processes import Process
from bed.progress import say, step
from bed.rest import Json, Refused
from bed.runs import NODE_FOLDER
from bed.waiting import wait_until

CONTROL_PLANE_BINARIES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
NODE_BINARIES = ("kubelet", "kube-proxy", "coredns")
READY_SECONDS = 180.0  # seven are usual
SICK_SECONDS = 75.0
"""How long kube-proxy and CoreDNS may be unwell before they are started anew, as the kubelet does with a pod whose
probe fails. kube-proxy calls itself unhealthy once a change has waited for 60 s."""


class RealNode:
    """The machine's real node as part of `plane`; all its state is in `folder`.

    `containerd`, `kubelet`, `coredns` and `kube_proxy` are its daemons, which tests may kill and start again;
    `enclosure` is the process that keeps their surroundings alive.
    """

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        self.folder = folder
        self._enclosure = Enclosure(folder)
        self._runtime = Containerd(self._enclosure, folder)
        self.enclosure = self._enclosure.holder
        self.containerd = self._runtime.process
        self.kubelet = self._enclosure.daemon("kubelet", kubelet_command(folder))
        self.coredns = self._enclosure.daemon("coredns", coredns_command(folder))
        self.kube_proxy = self._enclosure.daemon("kube-proxy", kube_proxy_command(folder))

    @property
    def is_ready(self) -> bool:
        """Whether pods can run on it."""
        daemons = (self.containerd, self.kubelet, self.coredns, self.kube_proxy)
        return all(process.alive for process in daemons) and takes_pods(self._node())

    def up(self) -> None:
        """Bring the node up and return once pods can run on it. What is up already stays."""
        if self.is_ready:
            return
        prepare_machine(self.folder)
        images = make_parts()
        is_new = self._enclosure.up()
        lay_pod_network()
        self._runtime.up()
        if is_new:
            self._runtime.forget_containers()
        self._runtime.import_archive(images)
        with step("starting the real node"):
            self._join_cluster()

    def down(self) -> None:
        """Take the node down, in whatever state it is."""
        take_down(self.folder)

    def import_image(self, archive: Path) -> None:
        """Make the images of an OCI archive known to the node."""
        self._runtime.import_anew(archive)

    def image_names(self) -> list[str]:
        """The full names of the images the node has."""
        return self._runtime.image_names()

    def _join_cluster(self) -> None:
        self.plane.kubectl("apply", "--server-side", "-f", "-", stdin=NODE_MANIFESTS)
        write_kubelet_files(self.plane, self.folder)
        write_service_files(self.plane, self.folder)
        self.kubelet.start()
        self.coredns.start()
        wait_until("registration of the real node", self._node, READY_SECONDS)
        self.kube_proxy.start()
        _wait_for_health(self.kube_proxy, proxy_trouble)
        _wait_for_health(self.coredns, dns_trouble)
        wait_until("readiness of the real node", lambda: takes_pods(self._node()), READY_SECONDS)

    def _node(self) -> Json | None:
        try:
            return self.plane.admin.get(f"/api/v1/nodes/{NODE_NAME}")
        except (Refused, OSError):
            return None  # not registered yet, or there is no API server


def _wait_for_health(daemon: Process, trouble: Callable[[], str]) -> None:
    """Return once `trouble` is empty. A daemon that is not well for long is started anew, and what it said is shown."""
    try:
        wait_until(f"health of {daemon.name}", lambda: not trouble(), SICK_SECONDS)
    except BedError:
        say(f"bed: {daemon.name} is not well and started anew: {trouble()}\n{daemon.last_lines(40)}")
        daemon.restart()
        wait_until(f"health of {daemon.name}, started anew", lambda: not trouble(), READY_SECONDS)


def make_parts() -> Path:
    """Install and build what a node and its control plane are made of, as far as it is missing; returns the images.

    Takes minutes the first time and a moment later.
    """
    install_missing_packages()
    build([*CONTROL_PLANE_BINARIES, *NODE_BINARIES])
    return standard_images()


def prepare_machine(folder: Path) -> None:
    """Claim the machine's real node for `folder` and give the machine the address its control plane listens on.

    Called before a control plane with NODE_SETTINGS starts. Raises BedError where a real node cannot run.
    """
    if (reason := why_not()) is not None:
        raise BedError(reason)
    install_missing_packages()
    if take_claim(folder):
        undo(folder)
        take_claim(folder)
    for module in missing_modules(loadable=False):
        run(["modprobe", module])
    save_sysctls()
    lay_node_address()


def take_down(folder: Path) -> None:
    """Leave nothing of the node of `folder` on this machine, whatever state it is in; a node of another bed stays."""
    if not is_anothers(folder):
        undo(folder)


def undo(folder: Path) -> None:
    """End every process of the machine's real node and undo what it changed. Each part works alone and twice.

    Processes first: they would make new what is removed. The claim last: until then the node is not free.
    """
    failures = []
    for part in (Enclosure(folder).down, remove_network, remove_volatile_state, restore_sysctls):
        try:
            part()
        except (BedError, OSError) as failure:
            failures.append(str(failure))  # the other parts are still undone
    if failures:
        raise BedError(f"the real node is not wholly down: {'; '.join(failures)}")
    drop_claim()
    if MACHINE_FOLDER.is_dir() and not any(MACHINE_FOLDER.iterdir()):
        MACHINE_FOLDER.rmdir()


def takes_pods(node: Json | None) -> bool:
    """Whether a Node can take pods, with the number of CPUs it is to claim."""
    if node is None:
        return False
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", []))
    return ready and node["status"]["capacity"]["cpu"] == str(CLAIMED_CPUS)


def node_cluster(folder: Path) -> RealNode:
    """A control plane in `folder` with a real node of its own, both up; what is up already stays."""
    node_folder = folder / NODE_FOLDER
    prepare_machine(node_folder)
    plane = ControlPlane.find_or_create(folder, NODE_SETTINGS)
    with step("starting the control plane"):
        plane.up()
    node = RealNode(plane, node_folder)
    node.up()
    return node
