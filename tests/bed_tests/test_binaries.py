"""Binaries come from pinned Go modules; a build is whole or not there, and says why it failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bed.binaries import (
    BINARIES,
    OLDER_KUBERNETES,
    Binary,
    binary,
    build,
    build_command,
    needed_for,
    older,
)
from bed.cache import cache_folder
from bed.errors import BedError
from bed.golang import MODULES, needed_version, parse_version


def test_the_cache_is_where_the_environment_says() -> None:
    assert cache_folder({"RAYKEEPER_BED_CACHE": "/a", "XDG_CACHE_HOME": "/b"}) == Path("/a")
    assert cache_folder({"XDG_CACHE_HOME": "/b"}) == Path("/b/raykeeper-bed")
    assert cache_folder({}) == Path.home() / ".cache" / "raykeeper-bed"


def test_a_binary_is_kept_by_name_and_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAYKEEPER_BED_CACHE", "/cache")
    assert BINARIES["kwok"].path == Path("/cache/bin/kwok-v0.8.0/kwok")


def test_pinned_modules_are_built_exactly_as_committed() -> None:
    arguments, folder, environment = build_command(BINARIES["kube-apiserver"], Path("/target"))
    assert folder == MODULES / "kubernetes"
    assert arguments[:2] == ["build", "-mod=readonly"]
    assert arguments[-3:] == ["-o", "/target/kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"]
    assert "gitVersion=v1.36.3" in " ".join(arguments)
    assert environment["CGO_ENABLED"] == "0"


def test_other_modules_are_installed_by_version() -> None:
    arguments, _, environment = build_command(BINARIES["kwok"], Path("/target"))
    assert (arguments[0], arguments[-1]) == ("install", "sigs.k8s.io/kwok/cmd/kwok@v0.8.0")
    assert environment["GOBIN"] == "/target"


def test_every_pinned_row_names_a_committed_module_that_has_its_version() -> None:
    for row in BINARIES.values():
        if row.module is not None:
            lines = (MODULES / row.module / "go.mod").read_text().split("\n")
            required = [line.removeprefix("require").split()[:2] for line in lines if row.version in line]
            asked = [module for module, version in required if version == row.version]
            # A program of ours around somebody's library has the library's version.
            assert asked if row.package == f"bed/{row.module}" else any(map(row.package.startswith, asked))


def test_what_make_test_does_not_need_is_built_on_request_only() -> None:
    assert not {"kueue", "kuberay-operator", "kubectl-ray", older("kube-apiserver")} & set(needed_for("test"))
    assert {"kueue", "kuberay-operator"} <= set(needed_for("interop"))
    assert "gitMinor=30" in " ".join(build_command(BINARIES[older("kube-apiserver")], Path("/target"))[0])
    assert BINARIES[older("kube-apiserver")].path.parent.name == f"kube-apiserver-{OLDER_KUBERNETES}"


def test_versions_of_go_are_compared_as_numbers() -> None:
    assert parse_version("go version go1.26.8 linux/amd64") == (1, 26, 8)
    assert parse_version("go 1.9") < parse_version("go 1.26.0") <= needed_version()
    assert parse_version("command not found") == (0,)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BedError, match="no binary is called 'kubelett'; there are etcd,"):
        binary("kubelett")


@pytest.mark.bed
def test_a_failed_build_tells_cause_and_cure_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAYKEEPER_BED_CACHE", str(tmp_path))
    monkeypatch.setitem(BINARIES, "broken", Binary("broken", "v1", "no.such/package", "etcd"))
    with pytest.raises(BedError, match=r"broken v1 could not be built; .*then: bed build broken\n.*no.such/package"):
        build(["broken"])
    assert not BINARIES["broken"].path.exists()
