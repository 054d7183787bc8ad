"""Many kinds of RayCluster on the real API server: each gets exactly the children that its golden file shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bed.control_plane import ControlPlane
from crds.field_tables import TABLES
from crds.manifests import fields_given
from rayclusters.children_cases import CASES
from rayclusters.stored_children import Sent, kept, lost, normalised, stored_children
from rayclusters.whole_clusters import OPERATORS, WHOLE_CLUSTERS, whole_cluster
from raykeeper.api import labels
from raykeeper.api.meta import JSON, Resource
from raykeeper.kube.client import USER_AGENT, Kube
from raykeeper.kube.resources import SERVICE_ACCOUNTS
from support.conditions import eventually
from support.golden import AssertGolden, files_without_test, to_yaml
from support.kube_clients import connected
from support.operating import operating
from support.raycluster_scene import CLUSTERS, POD_OBJECTS

GOLDEN = Path(__file__).parent / "golden" / "clusters"
VERSION = USER_AGENT.partition("/")[2]
NOT_HANDLED = (".spec.networkPolicy", ".spec.tlsOptions")
"""Fields that other controllers of KubeRay are about; their feature gates cannot be turned on."""

OF_ANOTHER = frozenset({"managed-by-another"})
USERS_SERVICE_ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "mine"}}


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """Everything that clients of this process create from now on."""
    bodies: Sent = {}
    create = Kube.create

    async def recording(kube: Kube, resource: Resource[Any], body: JSON, *args: Any, **options: Any) -> Any:
        bodies[resource.kind, body["metadata"].get("name", "")] = body
        return await create(kube, resource, body, *args, **options)

    monkeypatch.setattr(Kube, "create", recording)
    return bodies


def unsettled(clusters: Mapping[str, JSON], pods: list[JSON]) -> dict[str, JSON]:
    """The status of each cluster whose pods are not all there yet."""
    counts: dict[str, int] = {}
    for pod in pods:
        owner = pod["metadata"]["labels"][labels.CLUSTER]
        counts[owner] = counts.get(owner, 0) + 1
    return {
        name: cluster.get("status", {})
        for name, cluster in clusters.items()
        if name not in OF_ANOTHER and not _is_settled(cluster, counts.get(name, 0))
    }


def _is_settled(cluster: JSON, pods: int) -> bool:
    status = cluster.get("status", {})
    if status.get("observedGeneration") != cluster["metadata"]["generation"]:
        return False
    wanted = 0 if status.get("state") == "suspended" else status.get("desiredWorkerReplicas", 0) + 1
    return bool(pods == wanted)


async def settle(kube: Kube, namespace: str) -> dict[str, JSON]:
    """The clusters of a namespace once all their pods exist; fails with the status of those that lack some."""
    left: dict[str, JSON] = {}

    async def look() -> dict[str, JSON] | None:
        nonlocal left
        clusters = {item["metadata"]["name"]: item for item in await kube.list(CLUSTERS, namespace)}
        left = unsettled(clusters, await kube.list(POD_OBJECTS, namespace))
        return None if left else clusters

    try:
        return await eventually(look) or {}
    except TimeoutError:
        pytest.fail(f"pods are missing:\n{to_yaml(left)}", pytrace=False)


@pytest.mark.parametrize("operator", OPERATORS)
async def test_every_cluster_has_exactly_the_children_of_its_golden_file(
    operator: str,
    ray_crds: ControlPlane,
    namespace: str,
    sent: Sent,
    assert_golden: AssertGolden,
    subtests: pytest.Subtests,
) -> None:
    settings, cases = OPERATORS[operator]
    async with connected(ray_crds.admin_kubeconfig) as kube:
        await kube.create(SERVICE_ACCOUNTS, USERS_SERVICE_ACCOUNT, namespace)
        manifests = {name: whole_cluster(name, namespace) for name in cases}
        for body in manifests.values():
            await kube.create(CLUSTERS, body, namespace)
        async with operating(ray_crds.admin_kubeconfig, namespace, settings=settings):
            clusters = await settle(kube, namespace)
        children = await stored_children(kube, namespace)
    assert _pods(sent) == _pods((one["kind"], one["metadata"]["name"]) for found in children.values() for one in found)
    for name, body in manifests.items():
        cluster = clusters[body["metadata"]["name"]]
        with subtests.test(name):
            found = children.get(cluster["metadata"]["name"], [])
            assert_golden(GOLDEN / f"{name}.yaml", normalised(cluster, [_as_sent(sent, one) for one in found], VERSION))


def _pods(keys: Iterable[tuple[str, str]]) -> set[str]:
    """Names of pods: those that were made must be those that are there, else one was made in vain."""
    return {name for kind, name in keys if kind == "Pod"}


def _as_sent(sent: Sent, child: JSON) -> JSON:
    """The child in the fields that the operator sent, all of which the server must have kept."""
    body = sent[child["kind"], child["metadata"]["name"]]
    assert list(lost(body, child)) == []
    shown: JSON = kept(body, child)
    return shown


def test_every_golden_file_is_of_a_case() -> None:
    assert files_without_test(GOLDEN, WHOLE_CLUSTERS) == []


def test_no_case_is_lost_to_another_of_its_name() -> None:
    assert len(WHOLE_CLUSTERS) == sum(len(clusters) for _, clusters in OPERATORS.values()) >= 60


def test_no_case_of_children_is_left_out_but_for_openshift() -> None:
    on_openshift = {name for name, (_, settings) in CASES.items() if settings.uses_routes}
    assert CASES.keys() - WHOLE_CLUSTERS.keys() == on_openshift


def given_fields() -> dict[str, set[str]]:
    """Every field of the specs in the table, with its plain values as text."""
    given: dict[str, set[str]] = {}
    for builder in WHOLE_CLUSTERS.values():
        for path, value in fields_given(builder.manifest["spec"], ".spec"):
            given.setdefault(path, set()).add(str(value))
    return given


def handled_fields() -> dict[str, str]:
    """What the tables of fields say about each field of a spec that this operator handles."""
    return {
        path: facts
        for path, facts in TABLES["RayCluster"].items()
        if path.startswith(".spec") and not path.startswith(NOT_HANDLED)
    }


def test_every_field_is_in_one_of_the_clusters() -> None:
    assert handled_fields().keys() - given_fields().keys() == set()


def test_every_value_of_an_enum_is_in_one_of_the_clusters() -> None:
    given = given_fields()
    choices = {
        path: facts.partition("enum=")[2].split()[0] for path, facts in handled_fields().items() if "enum=" in facts
    }
    missing = {path: set(values.split("|")) - given[path] for path, values in choices.items()}
    assert {path: values for path, values in missing.items() if values} == {}
