"""The parts of the real node that decide and describe, tested without root and without a node."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from bed.node import cgroup
from bed.node.commands import CommandFailed, run
from bed.node.enclosure import PRIVATE_FOLDERS
from bed.node.inventory import Inventory, difference
from bed.node.oci import Image, full_name, write_archive
from bed.node.packages import PROGRAMS, packages_of
from bed.node.wheels import write_wheel
from bed.node.why_not import Machine, reason_against

NOTHING: frozenset[str] = frozenset()
EMPTY = Inventory(*[NOTHING] * 10)


@pytest.mark.parametrize(
    ("machine", "reason"),
    [
        (Machine(platform="darwin"), "needs Linux, this is darwin"),
        (Machine(user=1000), "needs root, this is user 1000"),
        (Machine(capabilities=1 << 12), "needs CAP_SYS_ADMIN, which root does not have here"),
        (Machine(missing_modules=["overlay"]), "this kernel lacks: overlay"),
        (Machine(routes=[IPv4Network("10.244.7.0/24")]), "route to 10.244.7.0/24 overlaps"),
        (Machine(routes=[IPv4Network("10.0.0.0/8")]), "route to 10.0.0.0/8 overlaps"),
    ],
)
def test_a_machine_that_cannot_run_a_node_is_told_why(machine: Machine, reason: str) -> None:
    assert reason in str(reason_against(machine))


def test_root_on_an_ordinary_linux_can_run_a_node() -> None:
    assert reason_against(Machine(routes=[IPv4Network("192.168.0.0/16"), IPv4Network("172.17.0.0/16")])) is None


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("busybox:1.28", "docker.io/library/busybox:1.28"),
        ("rayproject/ray:2.60.0", "docker.io/rayproject/ray:2.60.0"),
        ("quay.io/kuberay/operator:v1", "quay.io/kuberay/operator:v1"),
        ("localhost/own:1", "localhost/own:1"),
        ("registry:5000/own:1", "registry:5000/own:1"),
    ],
)
def test_an_image_is_filed_under_the_name_by_which_the_kubelet_asks(short: str, full: str) -> None:
    assert full_name(short) == full


def test_an_archive_holds_a_shared_layer_once_and_names_every_image(tmp_path: Path) -> None:
    layer = tmp_path / "layer.tar"
    layer.write_bytes(b"the same in both")
    write_archive(tmp_path / "images.tar", [Image("first:1", [layer]), Image("second:1", [layer], user="1000")])
    with tarfile.open(tmp_path / "images.tar") as archive:
        blobs = [name for name in archive.getnames() if name.startswith("blobs/")]
        index = json.loads(archive.extractfile("index.json").read())  # type: ignore[union-attr]  # it is a file
    names = [manifest["annotations"]["io.containerd.image.name"] for manifest in index["manifests"]]
    assert names == ["docker.io/library/first:1", "docker.io/library/second:1"]
    assert len(blobs) == 1 + 2 + 2  # the layer, two configurations, two manifests


def test_the_same_content_gives_the_same_archive(tmp_path: Path) -> None:
    layer = tmp_path / "layer.tar"
    layer.write_bytes(b"content")
    indexes = []
    for name in ("a.tar", "b.tar"):
        write_archive(tmp_path / name, [Image("own:1", [layer])])
        with tarfile.open(tmp_path / name) as archive:
            indexes.append(archive.extractfile("index.json").read())  # type: ignore[union-attr]  # it is a file
    assert indexes[0] == indexes[1]


def test_the_hand_made_wheel_can_be_imported(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path, "some_package", "1.0", "ANSWER = 42\n")
    show = "import importlib.metadata as m, some_package as p; print(p.ANSWER, m.version('some_package'))"
    assert subprocess.check_output([sys.executable, "-c", show], env={"PYTHONPATH": str(wheel)}) == b"42 1.0\n"


MIXED_MOUNTS = """\
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime shared:7 - cgroup cgroup rw,pids
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
"""


def test_cgroup_hierarchies_of_both_versions_are_found() -> None:
    assert [path.name for path in cgroup.hierarchies(MIXED_MOUNTS)] == ["memory", "pids", "unified"]


@pytest.mark.parametrize(
    ("memberships", "is_the_nodes"),
    [
        ("8:pids:/\n0::/raykeeper-bed/daemons\n", True),
        ("4:memory:/raykeeper-bed/kubepods/pod1/c1\n0::/\n", True),
        ("0::/raykeeper-bed\n", True),
        ("0::/raykeeper-bedroom\n", False),
        ("4:memory:/kubepods/raykeeper-bed\n0::/system.slice\n", False),
    ],
)
def test_a_process_is_the_nodes_when_any_hierarchy_has_it_in_the_nodes_branch(
    memberships: str, is_the_nodes: bool
) -> None:
    assert cgroup.is_member(memberships) is is_the_nodes


def test_a_difference_names_what_came_and_what_went() -> None:
    before = replace(EMPTY, links=frozenset({"lo", "eth0"}))
    after = replace(EMPTY, links=frozenset({"lo", "rkbed0"}), mounts=frozenset({"/x"}))
    assert difference(before, after) == ["mounts: + /x", "links: + rkbed0", "links: - eth0"]
    assert difference(after, after) == []


def test_missing_programs_are_traced_to_packages_each_named_once() -> None:
    assert packages_of(["containerd", "ctr", "nft"]) == ["containerd", "nftables"]
    assert packages_of(list(PROGRAMS)) == list(dict.fromkeys(PROGRAMS.values()))


def test_a_failed_program_is_reported_with_its_last_words() -> None:
    with pytest.raises(CommandFailed, match=r"(?s)`sh -c .*failed: the cause"):
        run(["sh", "-c", "echo the cause >&2; exit 3"])
    with pytest.raises(CommandFailed, match="no such program"):
        run(["/no/such/program"])
    with pytest.raises(CommandFailed, match="more than 0 s"):
        run(["sleep", "60"], timeout_seconds=0.05)


def test_no_private_folder_lies_inside_another() -> None:
    assert not [(a, b) for a in PRIVATE_FOLDERS for b in PRIVATE_FOLDERS if a != b and a.is_relative_to(b)]
