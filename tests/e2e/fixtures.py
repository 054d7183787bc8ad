"""Our own image on the real node, and a bucket that pods can reach."""

from __future__ import annotations

import uuid

import pytest

from bed.minio import Minio
from bed.node.real_node import RealNode
from e2e.collected_scene import PodBucket
from e2e.own_image import OWN_IMAGE, own_image


@pytest.fixture(scope="session")
def imported() -> set[str]:
    """Images that this run has brought to the node; they stay when it goes and comes back."""
    return set()


@pytest.fixture
def node_with_own_image(real_node: RealNode, imported: set[str]) -> RealNode:
    """The real node, with the image of the code as it is now."""
    if OWN_IMAGE not in imported:
        real_node.import_image(own_image())
        imported.add(OWN_IMAGE)
    return real_node


@pytest.fixture
def pod_bucket(node_with_own_image: RealNode, node_minio: Minio) -> PodBucket:
    """A bucket of this test's own, on a node that can run collectors."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    node_minio.make_bucket(name)
    return PodBucket(node_minio, name)
