"""The real node as pytest fixtures: one per test run, with a control plane of its own.

It comes up with the first test that needs it. Tests that use it run one after the other, also with xdist, so that
one of them can also ask for the machine without a node.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from bed.fixtures import make_namespace, remove_namespace, run_folder
from bed.locks import file_lock
from bed.minio import Minio, MinioLayout
from bed.node.real_node import RealNode, make_parts, node_cluster
from bed.node.settings import NODE_ADDRESS
from bed.node.why_not import why_not
from bed.runs import end_run


def pytest_collection_finish(session: pytest.Session) -> None:
    """Make what a node needs before the first test: the first time it takes longer than any test may."""
    wanted = any(item.get_closest_marker("node") for item in session.items)
    if not wanted or session.config.option.collectonly or why_not() is not None:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture is not None else nullcontext():
        make_parts()


@pytest.fixture
def node_turn(request: pytest.FixtureRequest) -> Iterator[Path]:
    """This test's turn with the machine's real node; the folder of the run's own. Skips where none can run."""
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    folder = run_folder(request.config)
    with file_lock(folder / "node-turn.lock"):
        yield folder / "with-node"


@pytest.fixture
def real_node(node_turn: Path) -> RealNode:
    """The real node of this test run, brought up when it is not. Others use it too: pods go into `node_namespace`."""
    return node_cluster(node_turn)


@pytest.fixture
def node_minio(real_node: RealNode, request: pytest.FixtureRequest) -> Minio:
    """An object store that pods can reach; one per test run."""
    folder = run_folder(request.config) / "node-minio"
    if not MinioLayout.file(folder).exists():
        Minio.create(folder, str(NODE_ADDRESS))
    server = Minio.attach(folder)
    server.up()
    return server


@pytest.fixture
def bare_machine(node_turn: Path) -> None:
    """No real node of this run: the test makes one itself, or looks at what one leaves behind."""
    end_run(node_turn)


@pytest.fixture
def node_namespace(real_node: RealNode) -> Iterator[str]:
    """A fresh namespace in the real node's cluster, deleted with its pods after the test."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    make_namespace(real_node.plane, name)
    yield name
    remove_namespace(real_node.plane, name)
