"""What a RayService does where Serve, a head, a spec or a name is not as it should be."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from bed.control_plane import ControlPlane
from raykeeper.api.meta import JSON, ObjectKey, Resource
from support.conditions import eventually
from support.operating import ClockAhead
from support.rayservice_scene import (
    PATIENCE,
    RAY_SERVICE_OBJECTS,
    ServiceScene,
    a_cluster_config,
    a_rayservice,
    a_serve_config,
    a_service_scene,
)

pytestmark = pytest.mark.usefixtures("kwok")
SERVICES: Resource[JSON] = Resource("", "v1", "services", "Service", dict)


@pytest.fixture
async def scene(ray_crds: ControlPlane) -> AsyncIterator[ServiceScene]:
    async with a_service_scene(ray_crds) as scene:
        yield scene


async def test_a_config_that_is_no_yaml_is_refused_before_anything_is_made(scene: ServiceScene) -> None:
    await scene.apply(a_rayservice(serveConfigV2="applications: ["))
    async with scene.operating():
        found = await scene.says("Ready", "False", "spec.serveConfigV2 cannot be used", reason="ValidationFailed")
        assert found["observedGeneration"] == 1
        assert not await scene.clusters()
        await scene.is_told("InvalidRayServiceSpec")
        await scene.patch(serveConfigV2=a_serve_config())
        await scene.serves()


async def test_a_service_that_is_edited_into_nonsense_goes_on(scene: ServiceScene) -> None:
    await scene.apply(a_rayservice())
    async with scene.operating():
        active = await scene.serves()
        await scene.patch(serveConfigV2="- no mapping", rayClusterConfig=a_cluster_config(image="other"), suspend=True)
        await scene.says("RayServiceInvalid", "True", "spec.serveConfigV2 cannot be used")
        assert (await scene.serves(), set(await scene.clusters())) == (active, {active})
        await scene.patch(serveConfigV2=a_serve_config(), suspend=False)
        await scene.serves(other_than=active)
        assert not await scene.condition("RayServiceInvalid")


@pytest.mark.parametrize(
    "trouble",
    [{"failure": "the controller is gone"}, {"garbage": "<html>"}, {"garbage": "{}"}, {"is_hanging": True}],
    ids=["500", "no JSON", "no applications", "no answer"],
)
async def test_a_head_that_answers_wrongly_gets_no_traffic(trouble: JSON, scene: ServiceScene) -> None:
    await scene.apply(a_rayservice())
    async with scene.operating():
        old = await scene.serves()
        await scene.patch(rayClusterConfig=a_cluster_config(image="rayproject/ray:2.61.0"))
        new = await scene.has_pending()
        for name, value in trouble.items():
            setattr(scene.head(new), name, value)

        async def is_asked() -> bool:
            return bool((await scene.head_pod(new))["status"].get("phase") == "Running")

        await eventually(is_asked, seconds=PATIENCE)
        assert (await scene.selected(), (await scene.condition("Ready"))["status"]) == (old, "True")
        for name in trouble:
            setattr(scene.head(new), name, type(trouble[name])())
        assert await scene.serves(other_than=old) == new


async def test_what_serve_says_about_a_failed_application_is_told(ray_crds: ControlPlane) -> None:
    script: JSON = {"state": "DEPLOY_FAILED", "deployment_state": "UNHEALTHY", "message": "No module named 'model'"}
    async with a_service_scene(ray_crds, **script) as scene:
        await scene.apply(a_rayservice())
        async with scene.operating():
            text = "application shop is DEPLOY_FAILED: No module named 'model'"
            await scene.says("ServeApplicationsHealthy", "False", text)
            await scene.says("Ready", "False", text, reason="Initializing")
            failed = (await scene.status())["pendingServiceStatus"]["applicationStatuses"]["shop"]
            assert failed["serveDeploymentStatuses"]["Model"]["status"] == "UNHEALTHY"
            assert not await scene.selected()


async def test_a_cluster_with_broken_applications_is_replaced_where_that_was_asked_for(scene: ServiceScene) -> None:
    await scene.apply(a_rayservice({"raykeeper.io/replace-unhealthy-after": "1s"}))
    async with scene.operating():
        old = await scene.serves()
        scene.head(old).state, scene.head(old).message = "UNHEALTHY", "lost a replica"
        await scene.serves(other_than=old)
        await scene.says("ServeApplicationsHealthy", "True", reason="AllRunning")


async def test_a_config_that_serve_refuses_is_told_in_its_words(ray_crds: ControlPlane) -> None:
    async with a_service_scene(ray_crds, refusal="duplicate route prefix") as scene:
        await scene.apply(a_rayservice())
        async with scene.operating():
            await scene.says("ServeApplicationsHealthy", "False", "duplicate route prefix", reason="ConfigNotTaken")
            await scene.is_told("FailedToUpdateServeApplications")
            scene.head(await scene.pending()).refusal = ""
            await scene.serves()


async def test_a_head_that_lost_its_applications_gets_them_again(scene: ServiceScene) -> None:
    await scene.apply(a_rayservice())
    async with scene.operating():
        active = await scene.serves()
        scene.head(active).has_lost_all = True  # `serve shutdown`, by hand
        await eventually(lambda: has_configs(scene, active, 2), seconds=PATIENCE)
        await scene.delete_head(active)
        scene.head(active).has_lost_all = True
        await eventually(lambda: has_configs(scene, active, 3), seconds=PATIENCE)
        assert await scene.serves() == active


async def has_configs(scene: ServiceScene, cluster: str, count: int) -> bool:
    return len(scene.head(cluster).configs) == count


async def test_nothing_is_sent_again_after_a_restart(scene: ServiceScene) -> None:
    await scene.apply(a_rayservice())
    async with scene.operating():
        active = await scene.serves()
        await scene.head_has_label(active, "true")
    scene.head(active).is_proxy_healthy = False
    async with scene.operating():
        await scene.head_has_label(active, "false")
    assert len(scene.head(active).configs) == 1


async def test_a_service_that_never_serves_is_given_up_until_its_spec_changes(ray_crds: ControlPlane) -> None:
    async with a_service_scene(ray_crds, state="DEPLOYING") as scene:
        await scene.apply(a_rayservice({"ray.io/initializing-timeout": "10m"}))
        async with scene.operating():
            first = await scene.has_pending()
            await scene.says("Ready", "False", reason="Initializing")
        async with scene.operating(clock=ClockAhead(timedelta(minutes=11))):
            await scene.says("Ready", "False", reason="InitializingTimeout")
            await scene.is_told("RayServiceInitializingTimeout")
            await scene.has_clusters()
            await scene.patch(serveConfigV2=a_serve_config("search"))
            second = await scene.has_pending(other_than=first)
            scene.head(second).state = "RUNNING"
            assert await scene.serves() == second


async def test_suspension_takes_all_down_and_resumption_starts_anew(scene: ServiceScene) -> None:
    await scene.apply(a_rayservice())
    async with scene.operating():
        first = await scene.serves()
        await scene.patch(suspend=True)
        await scene.says("Suspended", "True", reason="SuspendComplete")
        assert (await scene.condition("Suspending"))["status"] == "False"
        assert (await scene.condition("Ready"))["reason"] == "SuspendInProgress"
        assert not await scene.clusters()
        assert not [name for name in await scene.services() if name.startswith("web-") and first not in name]
        await scene.patch(suspend=False)
        second = await scene.serves(other_than=first)
        assert (await scene.condition("Suspended"))["reason"] == "RayServiceResumed"
        await scene.has_clusters(second)


async def test_what_was_created_suspended_makes_nothing(scene: ServiceScene) -> None:
    await scene.apply(a_rayservice(suspend=True))
    async with scene.operating():
        await scene.says("Suspended", "True")
        assert not await scene.clusters()
        await scene.patch(suspend=False)
        await scene.serves()


async def test_a_service_of_the_users_own_keeps_its_ports_and_drift_is_repaired(scene: ServiceScene) -> None:
    own: JSON = {
        "metadata": {"name": "shop", "labels": {"team": "a"}, "annotations": {"lb": "internal"}},
        "spec": {"type": "NodePort", "ports": [{"name": "grpc", "port": 9000}, {"name": "serve", "port": 80}]},
    }
    own["spec"]["ports"][1]["targetPort"] = 8000
    await scene.apply(a_rayservice(serveService=own))
    async with scene.operating():
        await scene.says("Ready", "True")
        key = ObjectKey(scene.namespace, "shop")
        made = await scene.kube.get(SERVICES, key)
        assert {(port["name"], port["port"]) for port in made["spec"]["ports"]} == {("grpc", 9000), ("serve", 80)}
        assert (made["spec"]["type"], made["metadata"]["labels"]["team"]) == ("NodePort", "a")
        await scene.kube.merge_patch(SERVICES, key, {"metadata": {"labels": {"team": "b"}}})

        async def is_repaired() -> bool:
            return bool((await scene.kube.get(SERVICES, key))["metadata"]["labels"]["team"] == "a")

        await eventually(is_repaired, seconds=PATIENCE)


async def test_a_service_of_somebody_else_is_left_alone_and_told(scene: ServiceScene) -> None:
    foreign = {"metadata": {"name": "web-serve-svc"}, "spec": {"ports": [{"port": 80}], "selector": {"app": "mine"}}}
    await scene.kube.create(SERVICES, {"apiVersion": "v1", "kind": "Service", **foreign}, scene.namespace)
    await scene.apply(a_rayservice())
    async with scene.operating():
        event = await scene.is_told("FailedToCreateService")
        assert "does not belong to this RayService" in event["note"]
        await scene.kube.delete(SERVICES, ObjectKey(scene.namespace, "web-serve-svc"))
        await scene.serves()
    assert (await scene.services())["web-serve-svc"]["metadata"]["ownerReferences"][0]["name"] == "web"


async def test_a_deleted_service_goes_with_the_finalizer_of_kuberay(scene: ServiceScene) -> None:
    body = a_rayservice()
    body["metadata"]["finalizers"] = ["ray.io/rayservice-finalizer"]
    await scene.apply(body)
    async with scene.operating():
        await scene.serves()
        await scene.kube.delete(RAY_SERVICE_OBJECTS, scene.key)
        await scene.is_gone()
        await scene.has_clusters()
