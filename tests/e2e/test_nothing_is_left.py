"""After `bed down` the machine is as it was before `bed up --node`, however the node ended."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bed.cache import CACHE_VARIABLE, cache_folder
from bed.control_plane import ControlPlane
from bed.node.cgroup import node_processes
from bed.node.claim import NodeIsTaken
from bed.node.containerd import Containerd
from bed.node.enclosure import Enclosure
from bed.node.image import BUSYBOX_IMAGE
from bed.node.inventory import Inventory, difference, take_inventory
from bed.node.network import lay_pod_network
from bed.node.real_node import RealNode, node_cluster, prepare_machine, take_down
from bed.processes import kill_and_wait
from bed.runs import NODE_FOLDER, end_run
from e2e.cluster import Namespace, a_pod, is_running

pytestmark = pytest.mark.soak  # nine nodes, one after the other, and about the bed alone

PERSONAL = ("runs", "up")
"""Folders of the cache that belong to beds which run now; everything else in it can be shared."""


@pytest.fixture
def own_cache(bare_machine: None, tmp_path: Path) -> Path:
    """A cache with all that was ever built but no running bed, so that a person's own `bed up` is not disturbed."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    for entry in cache_folder().iterdir():
        if entry.name not in PERSONAL:
            (tmp_path / entry.name).symlink_to(entry)
    return tmp_path


@pytest.fixture
def folder(bare_machine: None, node_turn: Path) -> Iterator[Path]:
    """A folder for a cluster that the test itself makes and ends."""
    yield node_turn
    end_run(node_turn)


def bed(cache: Path, *arguments: str) -> None:
    command = [str(Path(sys.executable).parent / "bed"), *arguments]
    subprocess.run(command, env=os.environ | {CACHE_VARIABLE: str(cache)}, check=True, timeout=280)


def run_a_pod(plane: ControlPlane) -> None:
    """Start a pod that would run for ever."""
    default = Namespace(plane, "default")
    default.create(a_pod("endless", ["sleep", "infinity"], image=BUSYBOX_IMAGE))
    default.wait_for_pod("endless", is_running)


def assert_nothing_is_left(before: Inventory, folder: Path) -> None:
    assert difference(before, take_inventory(folder)) == []


def test_bed_down_leaves_the_machine_as_bed_up_found_it(own_cache: Path) -> None:
    folder = own_cache / "up"
    before = take_inventory(folder)
    bed(own_cache, "up", "--node")
    run_a_pod(ControlPlane.attach(folder))
    assert {line.split(":")[0] for line in difference(before, take_inventory(folder))} >= {
        "processes",
        "links",
        "addresses",
        "routes",
        "nft_tables",
        "namespaces",
        "cgroups",
    }
    bed(own_cache, "down")
    assert_nothing_is_left(before, folder)


@pytest.mark.parametrize("victims", [("containerd",), ("kubelet",), ("containerd", "kubelet", "enclosure")])
def test_a_node_with_killed_daemons_goes_down_without_a_trace(folder: Path, victims: tuple[str, ...]) -> None:
    before = take_inventory(folder)
    node = node_cluster(folder)
    run_a_pod(node.plane)
    for process in (node.containerd, node.kubelet, node.enclosure):
        if process.name in victims:
            process.kill()
    end_run(folder)
    assert_nothing_is_left(before, folder)


def test_a_node_whose_every_process_was_killed_is_cleared_away_by_the_next(folder: Path, tmp_path: Path) -> None:
    before = take_inventory(folder)
    prepare_in_another_process(tmp_path / NODE_FOLDER)
    node = node_cluster(folder)  # takes over from the dead one
    run_a_pod(node.plane)
    for process in node_processes():
        kill_and_wait(process)
    node = node_cluster(folder)  # and comes up again over its own remains
    run_a_pod_again(node)
    end_run(folder)
    assert_nothing_is_left(before, folder)


def prepare_in_another_process(node_folder: Path) -> None:
    """Claim the node for a folder by a process that has ended when this returns."""
    code = (
        f"from pathlib import Path; from bed.node.real_node import prepare_machine as p; p(Path({str(node_folder)!r}))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def run_a_pod_again(node: RealNode) -> None:
    default = Namespace(node.plane, "default")
    assert "done" in default.output_of(a_pod("again", ["echo", "done"], image=BUSYBOX_IMAGE))


@pytest.mark.parametrize("steps_done", range(1, 5))
def test_a_half_made_node_goes_down_without_a_trace(folder: Path, steps_done: int) -> None:
    node_folder = folder / NODE_FOLDER
    enclosure = Enclosure(node_folder)
    steps = [lambda: prepare_machine(node_folder), enclosure.up, lay_pod_network, Containerd(enclosure, node_folder).up]
    before = take_inventory(folder)
    for step in steps[:steps_done]:
        step()
    take_down(node_folder)
    assert_nothing_is_left(before, folder)
    take_down(node_folder)
    assert_nothing_is_left(before, folder)


def test_a_second_bed_is_told_who_has_the_node_and_cannot_take_it_down(folder: Path, tmp_path: Path) -> None:
    prepare_machine(folder / NODE_FOLDER)
    with pytest.raises(NodeIsTaken, match=f"{folder / NODE_FOLDER}.*process {os.getpid()}"):
        prepare_machine(tmp_path / NODE_FOLDER)
    taken = take_inventory(folder)
    take_down(tmp_path / NODE_FOLDER)
    assert difference(taken, take_inventory(folder)) == []
