"""The bed as pytest fixtures: one control plane per test run, a fresh namespace per test, private ones on demand.

With xdist the process that runs pytest owns the run folder, every worker starts what is missing in it under a lock,
and the owner takes it down after the last worker has ended.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bed.control_plane import ControlPlane
from bed.daemons import ControlPlaneSettings
from bed.kwok import Kwok
from bed.locks import file_lock
from bed.minio import Minio, MinioLayout
from bed.rest import Refused
from bed.runs import end_run, new_run

BED_FIXTURES = frozenset(
    {
        *("control_plane", "own_control_plane", "new_control_plane", "namespace", "kwok"),
        *("minio", "bucket", "seaweedfs", "azurite", "fake_gcs"),
        *("chromium", "redis"),
    }
)
NODE_FIXTURES = frozenset({"node_turn"})
FINALIZED = ("rayjobs", "rayservices", "rayclusters", "raycronjobs")
LONGEST_FIRST = (
    "operator/rayjob/test_rayjob_crashes.py",
    "operator/test_process.py",
    "collector/whole/test_whole_ray_life.py",
    "operator/raycluster/test_crash_safety.py",
    "demo/test_whole_demo.py",
    "operator/rayservice/test_rayservice_crashes.py",
    "operator/rayjob/test_rayjob_reconcile.py",
    "operator/rayjob/test_submitter_and_ray.py",
    "operator/rayjob/test_rayjob_modes.py",
    "charts/test_charts.py",
    "operator/rayjob/test_rayjob_scenarios.py",
    "history/live/test_ends_of_sessions.py",
    "operator/rayservice/test_rayservice_upgrades.py",
    "kube/leader/test_election.py",
)
"""Files of a minute or more, those that need most of the API server apart from each other. A worker takes whole files:
the last ones should be short, so that all end together."""

# Kubernetes' 50 s would make a test of a lost node last a minute. With a few seconds a busy machine loses all nodes.
TEST_SETTINGS = ControlPlaneSettings(node_grace_seconds=30, lavish=True)

RUN_FOLDER = pytest.StashKey[Path]()

NewControlPlane = Callable[[ControlPlaneSettings], ControlPlane]


def run_folder(config: pytest.Config) -> Path:
    """The folder of this test run, the same in every worker; made by whoever asks first in the owning process."""
    worker_input: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker_input is not None:
        return Path(worker_input["bed_run_folder"])
    if RUN_FOLDER not in config.stash:
        config.stash[RUN_FOLDER] = new_run()
    return config.stash[RUN_FOLDER]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell an xdist worker where the run's folder is (a hook of xdist, called in the owning process)."""
    node.workerinput["bed_run_folder"] = str(run_folder(node.config))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Take down what the run started, once the workers are gone."""
    if RUN_FOLDER in config.stash:
        end_run(config.stash[RUN_FOLDER])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by what they use, before `-m` selects; what takes longest comes first."""
    for item in items:
        used = set(getattr(item, "fixturenames", ()))
        if used & BED_FIXTURES:
            item.add_marker("bed")
        if used & NODE_FIXTURES:
            item.add_marker("node")
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    path = item.path.as_posix()
    return next((place for place, file in enumerate(LONGEST_FIRST) if path.endswith(f"/{file}")), len(LONGEST_FIRST))


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> ControlPlane:
    """The control plane of this test run. Others use it too: do not harm it, use `own_control_plane` for that."""
    folder = run_folder(request.config) / "shared"
    folder.mkdir(exist_ok=True)
    with file_lock(folder / "start.lock"):
        plane = ControlPlane.find_or_create(folder, TEST_SETTINGS)
        plane.up()
    return plane


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A namespace of the shared control plane with its service account made, deleted after the test."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    make_namespace(control_plane, name)
    yield name
    remove_namespace(control_plane, name)


@pytest.fixture(scope="session")
def kwok(control_plane: ControlPlane) -> Kwok:
    """Fake nodes `fake-1` to `fake-4` of the shared control plane. A test that loses a node adds its own for that."""
    player = Kwok(control_plane)
    with file_lock(control_plane.folder / "start.lock"):
        player.up(nodes=4)
    return player


@pytest.fixture(scope="session")
def minio(request: pytest.FixtureRequest) -> Minio:
    """The object store of this test run."""
    folder = run_folder(request.config) / "minio"
    folder.mkdir(exist_ok=True)
    with file_lock(folder / "start.lock"):
        server = Minio.attach(folder) if MinioLayout.file(folder).exists() else Minio.create(folder)
        server.up()
    return server


@pytest.fixture
def bucket(minio: Minio) -> str:
    """A bucket of this test's own."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    minio.make_bucket(name)
    return name


@pytest.fixture(scope="module")
def new_control_plane(request: pytest.FixtureRequest) -> Iterator[NewControlPlane]:
    """A function that starts private control planes, taken down after the module."""
    planes: list[ControlPlane] = []

    def start(settings: ControlPlaneSettings = TEST_SETTINGS) -> ControlPlane:
        folder = run_folder(request.config) / f"own-{uuid.uuid4().hex[:8]}"
        plane = ControlPlane.create(folder, replace(settings, lavish=True))
        planes.append(plane)
        plane.up()
        return plane

    yield start
    for plane in planes:
        end_run(plane.folder)


@pytest.fixture(scope="module")
def own_control_plane(new_control_plane: NewControlPlane) -> ControlPlane:
    """A control plane of this module alone, which may be stopped, killed, paused and compacted."""
    return new_control_plane(TEST_SETTINGS)


def make_namespace(plane: ControlPlane, name: str) -> None:
    """Make a namespace and return once pods can be created in it."""
    plane.admin.post("/api/v1/namespaces", {"metadata": {"name": name}})
    plane.wait_for(f"/api/v1/namespaces/{name}/serviceaccounts/default")


def remove_namespace(plane: ControlPlane, name: str) -> None:
    """Delete a namespace and what is in it; returns at once.

    The finalizers of Ray's objects are taken off first, since no operator is left to do it: Kubernetes would try to
    empty the namespace over and over again until the end of the run.
    """
    for kind in FINALIZED:
        objects = f"/apis/ray.io/v1/namespaces/{name}/{kind}"
        with _gone_is_fine():
            for item in plane.admin.get(objects)["items"]:
                if item["metadata"].get("finalizers"):
                    with _gone_is_fine():
                        plane.admin.patch(f"{objects}/{item['metadata']['name']}", {"metadata": {"finalizers": None}})
    plane.admin.delete(f"/api/v1/namespaces/{name}")


@contextmanager
def _gone_is_fine() -> Iterator[None]:
    try:
        yield
    except Refused as refused:
        if refused.status != 404:
            raise
