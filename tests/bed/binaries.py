"""The servers of the bed as executables, built from their Go modules once per version into the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bed.cache import cache_folder
from bed.errors import BedError
from bed.golang import MODULES, go
from bed.locks import file_lock
from bed.progress import say, step

KUBERNETES = "v1.36.3"
OLDER_KUBERNETES = "v1.30.14"  # the module proxy does not have all parts of 1.31 and 1.32
STRIPPED = "-s -w"
Purpose = Literal["test", "interop", "soak"]
"""Whoever needs it: the target of make."""


@dataclass(frozen=True)
class Binary:
    """One row of the table: what is built from where."""

    name: str
    version: str
    package: str
    module: str | None = None
    """Folder in `go/` whose go.mod pins it; None where `go install PACKAGE@VERSION` works."""
    ldflags: str = STRIPPED
    purpose: Purpose = "test"
    key: str = ""
    """What it is called among the others; its name where that is empty."""

    @property
    def path(self) -> Path:
        """Where it is, or will be once built."""
        return cache_folder() / "bin" / f"{self.name}-{self.version}" / self.name


def _kubernetes(name: str) -> Binary:
    return Binary(name, KUBERNETES, f"k8s.io/kubernetes/cmd/{name}", "kubernetes", _stamps(KUBERNETES))


def _older_kubernetes(name: str) -> Binary:
    version, key = OLDER_KUBERNETES, older(name)
    return Binary(name, version, f"k8s.io/kubernetes/cmd/{name}", "kubernetes-1.30", _stamps(version), "soak", key)


def older(name: str) -> str:
    """What a daemon of the older Kubernetes is called here."""
    return f"{name}-older"


def _stamps(version: str) -> str:
    """Without them the server says v0.0.0, and clients that look at the version misbehave."""
    major, minor, _ = version.removeprefix("v").split(".")
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return " ".join([STRIPPED, *(f"-X k8s.io/component-base/version.{name}={text}" for name, text in stamps.items())])


def _kuberay_tool(name: str, package: str) -> Binary:
    return Binary(name, KUBERAY, f"github.com/ray-project/kuberay/{package}", "kuberay-tools", purpose="interop")


def _volcano(command: str) -> Binary:
    name, package = f"volcano-{command}", f"volcano.sh/volcano/cmd/{command}"
    return Binary(name, VOLCANO, package, "volcano", purpose="interop")


def _scheduler_plugins(command: str) -> Binary:
    name, package = f"scheduler-plugins-{command}", f"sigs.k8s.io/scheduler-plugins/cmd/{command}"
    return Binary(name, "v0.34.7", package, "scheduler-plugins", purpose="interop")


KUBERAY = "v1.6.2"  # the newest that the module proxy gives out
VOLCANO = "v1.14.1"  # of later ones the module proxy lacks volcano.sh/apis


BINARIES: Mapping[str, Binary] = {
    row.key or row.name: row
    for row in (
        Binary("etcd", "v3.6.8", "go.etcd.io/etcd/server/v3", "etcd"),
        _kubernetes("kube-apiserver"),
        _kubernetes("kube-controller-manager"),
        _kubernetes("kube-scheduler"),
        _kubernetes("kubectl"),
        _kubernetes("kubelet"),
        _kubernetes("kube-proxy"),
        Binary("kwok", "v0.8.0", "sigs.k8s.io/kwok/cmd/kwok"),
        Binary(
            "kuberay-operator", KUBERAY, "github.com/ray-project/kuberay/ray-operator", "kuberay", purpose="interop"
        ),
        Binary("coredns", "v1.15.0", "github.com/coredns/coredns"),
        Binary("fake-gcs-server", "v1.56.0", "github.com/fsouza/fake-gcs-server"),
        # MinIO stopped tagging; this is the last commit of its open source server.
        Binary("minio", "v0.0.0-20260212201848-7aac2a2c5b7c", "github.com/minio/minio"),
        Binary("helm-unittest", "v1.1.2", "github.com/helm-unittest/helm-unittest/cmd/helm-unittest", "helm-unittest"),
        Binary("crane", "v0.22.1", "github.com/google/go-containerregistry/cmd/crane"),
        Binary("helm", "v3.22.0", "helm.sh/helm/v3/cmd/helm", "helm", purpose="interop", key="helm-3"),
        Binary("helm", "v4.3.1", "helm.sh/helm/v4/cmd/helm", "helm", purpose="interop", key="helm-4"),
        Binary("ct", "v3.14.0", "github.com/helm/chart-testing/v3/ct", purpose="interop"),
        Binary("helm-docs", "v1.14.2", "github.com/norwoodj/helm-docs/cmd/helm-docs", purpose="interop"),
        Binary("gitops-health", "v3.2.0", "bed/gitops-health", "gitops-health", purpose="interop"),
        Binary("kueue", "v0.19.2", "sigs.k8s.io/kueue/cmd/kueue", "kueue", purpose="interop"),
        _volcano("scheduler"),
        _volcano("controller-manager"),
        _scheduler_plugins("scheduler"),
        _scheduler_plugins("controller"),
        Binary("yunikorn", "v1.8.0", "github.com/apache/yunikorn-k8shim/pkg/cmd/shim", "yunikorn", purpose="interop"),
        # 3.7 needs a module that is in no archive of it, and a version of another that the module proxy lacks.
        Binary("traefik", "v3.6.0", "github.com/traefik/traefik/v3/cmd/traefik", "traefik", purpose="interop"),
        _kuberay_tool("kuberay-apiserver", "apiserver/cmd"),
        _kuberay_tool("kuberay-security-proxy", "experimental/cmd"),
        _kuberay_tool("kubectl-ray", "kubectl-plugin/cmd"),
        Binary("kuberay-client", KUBERAY, "bed/kuberay-tools", "kuberay-tools", purpose="interop"),
        _older_kubernetes("kube-apiserver"),
        _older_kubernetes("kube-controller-manager"),
        _older_kubernetes("kube-scheduler"),
    )
}


def binary(name: str) -> Path:
    """The executable called `name`, built first when this version is not in the cache."""
    build([name])
    return BINARIES[name].path


def needed_for(purpose: Purpose) -> list[str]:
    """What `make test`, `make interop` or `make soak` needs; the last two beyond the first."""
    return [name for name, row in BINARIES.items() if row.purpose == purpose]


def build(names: Sequence[str] | None = None) -> None:
    """Build those of `names` (default: what `make test` needs) that are missing, telling the progress."""
    rows = [_row(name) for name in (needed_for("test") if names is None else names)]
    missing = [row for row in rows if not row.path.exists()]
    for number, row in enumerate(missing, start=1):
        # One lock for all: builds side by side take longer than one after the other, and share Go's caches.
        with file_lock(cache_folder() / "bin" / ".lock", on_wait=lambda: say("bed: another run is building; waiting")):
            if not row.path.exists():
                with step(f"building {row.name} {row.version} ({number} of {len(missing)})"):
                    _build(row)


def _row(name: str) -> Binary:
    if name not in BINARIES:
        raise BedError(f"no binary is called {name!r}; there are {', '.join(BINARIES)}")
    return BINARIES[name]


def _build(row: Binary) -> None:
    """Build into a folder beside the final one and move the result there, so that a path that exists is whole."""
    scratch = row.path.parent.with_name(f".{row.path.parent.name}.building")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    arguments, folder, environment = build_command(row, scratch)
    outcome = subprocess.run(
        [go(), *arguments],
        cwd=folder,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if outcome.returncode != 0 or not (scratch / row.name).exists():
        raise BedError(_failure(row, outcome.stdout))
    row.path.parent.mkdir(parents=True, exist_ok=True)
    (scratch / row.name).replace(row.path)
    shutil.rmtree(scratch)


def build_command(row: Binary, target: Path) -> tuple[list[str], Path, dict[str, str]]:
    """Arguments of `go`, the folder to run it in, and its extra environment, to build `row` into `target`."""
    # GOFLAGS of the machine must not change what is built; cgo would tie the result to the machine's libc.
    environment = {"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false", "GOBIN": str(target), "GOWORK": "off"}
    flags = ["-trimpath", "-ldflags", row.ldflags]
    if row.module is None:
        return ["install", *flags, f"{row.package}@{row.version}"], target, environment
    pinned = ["build", "-mod=readonly", *flags, "-o", str(target / row.name), row.package]
    return pinned, MODULES / row.module, environment


def _failure(row: Binary, output: str) -> str:
    cause = "\n  ".join(output.strip().splitlines()[-8:])
    cure = "needed are the Go module proxy (GOPROXY), about 4 GB of disk and 3 GB of memory"
    return f"{row.name} {row.version} could not be built; {cure}; then: bed build {row.name}\n  {cause}"
