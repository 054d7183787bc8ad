"""Who may do what: every mode of `--auth`, people with different rights, calls that need them, two namespaces."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from bed.control_plane import ControlPlane
from support.api_access import Outcome, call
from support.api_processes import ApiProcess
from support.auth_stage import (
    CONTENT,
    MODES,
    OWN_TOKEN,
    PEOPLE,
    STANDING,
    TEAM_TOKEN,
    Stage,
    a_stage,
    is_allowed,
)

TEMPLATES, CLUSTERS = "proto.ComputeTemplateService", "proto.ClusterService"
JOBS, SERVICES = "proto.RayJobService", "proto.RayServeService"
SUBMISSIONS = "proto.RayJobSubmissionService"
PROTOCOLS = ("grpc", "http")
DOOMED = "doomed"


@dataclass(frozen=True)
class Deed:
    """A call, and what right it needs."""

    name: str
    request: Callable[[str], dict[str, Any]]
    writes: bool = False
    everywhere: bool = False
    outcomes: frozenset[str] = frozenset({"OK"})
    """What comes of it for those who may."""
    removes: str = ""
    """The kind of the object that is gone afterwards, and there before."""


def a_submission(namespace: str) -> dict[str, Any]:
    return {"namespace": namespace, "clustername": STANDING, "jobsubmission": {"entrypoint": "true"}}


def of_a_submission(namespace: str) -> dict[str, Any]:
    return {"namespace": namespace, "clustername": STANDING, "submissionid": "missing"}


def a_template(namespace: str) -> dict[str, Any]:
    name = f"t-{uuid.uuid4().hex[:8]}"
    return {"namespace": namespace, "computeTemplate": {"name": name, "namespace": namespace, "cpu": 1, "memory": 1}}


def a_cluster_spec() -> dict[str, Any]:
    return {"headGroupSpec": {"computeTemplate": STANDING, "rayStartParams": {"a": "b"}}}


def a_cluster(namespace: str) -> dict[str, Any]:
    return {"namespace": namespace, "cluster": named(namespace, clusterSpec=a_cluster_spec())}


def a_job(namespace: str) -> dict[str, Any]:
    return {"namespace": namespace, "job": named(namespace, entrypoint="true", clusterSpec=a_cluster_spec())}


def a_service(namespace: str) -> dict[str, Any]:
    config = "applications: []"
    return {"namespace": namespace, "service": named(namespace, serveConfigV2=config, clusterSpec=a_cluster_spec())}


def a_replacement(namespace: str) -> dict[str, Any]:
    request = a_service(namespace)
    request["service"]["name"] = STANDING
    return {**request, "name": STANDING}


def named(namespace: str, **fields: Any) -> dict[str, Any]:
    """An object with a name that nobody has yet."""
    return {"name": f"o-{uuid.uuid4().hex[:8]}", "namespace": namespace, "user": "u", **fields}


def one(name: str) -> Callable[[str], dict[str, Any]]:
    return lambda namespace: {"namespace": namespace, "name": name}


def all_of(namespace: str) -> dict[str, Any]:
    return {"namespace": namespace}


def nothing(_: str) -> dict[str, Any]:
    return {}


READ_TEMPLATE = Deed(f"{TEMPLATES}.GetComputeTemplate", one(STANDING))
LIST_TEMPLATES = Deed(f"{TEMPLATES}.ListComputeTemplates", all_of)
LIST_ALL_TEMPLATES = Deed(f"{TEMPLATES}.ListAllComputeTemplates", nothing, everywhere=True)
DEEDS = [
    READ_TEMPLATE,
    LIST_TEMPLATES,
    LIST_ALL_TEMPLATES,
    Deed(f"{TEMPLATES}.CreateComputeTemplate", a_template, writes=True),
    Deed(f"{TEMPLATES}.DeleteComputeTemplate", one(DOOMED), writes=True, removes="configmaps"),
    Deed(f"{CLUSTERS}.GetCluster", one(STANDING)),
    Deed(f"{CLUSTERS}.GetCluster", one("missing"), outcomes=frozenset({"NOT_FOUND"})),
    Deed(f"{CLUSTERS}.ListCluster", all_of),
    Deed(f"{CLUSTERS}.ListAllClusters", nothing, everywhere=True),
    Deed(f"{CLUSTERS}.CreateCluster", a_cluster, writes=True),
    Deed(f"{CLUSTERS}.DeleteCluster", one(DOOMED), writes=True, removes="rayclusters"),
    Deed(f"{JOBS}.GetRayJob", one(STANDING)),
    Deed(f"{JOBS}.ListRayJobs", all_of),
    Deed(f"{JOBS}.ListAllRayJobs", nothing, everywhere=True),
    Deed(f"{JOBS}.CreateRayJob", a_job, writes=True),
    Deed(f"{JOBS}.DeleteRayJob", one(DOOMED), writes=True, removes="rayjobs"),
    Deed(f"{SERVICES}.GetRayService", one(STANDING)),
    Deed(f"{SERVICES}.ListRayServices", all_of),
    Deed(f"{SERVICES}.ListAllRayServices", nothing, everywhere=True),
    Deed(f"{SERVICES}.CreateRayService", a_service, writes=True),
    Deed(f"{SERVICES}.UpdateRayService", a_replacement, writes=True),
    Deed(f"{SERVICES}.DeleteRayService", one(DOOMED), writes=True, removes="rayservices"),
    *(
        Deed(f"{SUBMISSIONS}.{name}", request, writes=True, outcomes=frozenset({"UNAVAILABLE"}))
        for name, request in (
            ("SubmitRayJob", a_submission),
            ("GetJobDetails", of_a_submission),
            ("GetJobLog", of_a_submission),
            ("ListJobDetails", lambda namespace: {"namespace": namespace, "clustername": STANDING}),
            ("StopRayJob", of_a_submission),
            ("DeleteRayJob", of_a_submission),
        )
    ),
]
"""The last ones ask a head that is not there, and need more than the right to read its RayCluster."""


@pytest.fixture(scope="module")
def stage(ray_crds: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with a_stage(ray_crds, tmp_path_factory.mktemp("apiserver")) as stage:
        yield stage


@pytest.fixture(scope="module", params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def server(stage: Stage, mode: str) -> Iterator[ApiProcess]:
    """One for all tests of a mode."""
    with stage.server(mode) as server:
        yield server


@pytest.fixture(scope="module")
def token_server(stage: Stage) -> Iterator[ApiProcess]:
    with stage.server("token") as server:
        yield server


def check_matrix(stage: Stage, server: ApiProcess, mode: str) -> list[str]:
    """All that went otherwise than the roles say."""
    wrong = []
    for person in PEOPLE:
        headers = stage.headers(mode, person)
        for deed in DEEDS:
            for namespace in (stage.team, stage.other):
                allowed = is_allowed(
                    person, writes=deed.writes, is_team=namespace == stage.team, everywhere=deed.everywhere
                )
                for protocol in PROTOCOLS:
                    outcome, is_done = _tried(stage, server, protocol, deed, namespace, headers)
                    if not _is_as(outcome, deed, allowed) or is_done != (allowed and bool(deed.removes)):
                        wrong.append(f"{person} {deed.name} {namespace} {protocol}: {outcome}, allowed: {allowed}")
    return wrong


def _tried(
    stage: Stage, server: ApiProcess, protocol: str, deed: Deed, namespace: str, headers: dict[str, str]
) -> tuple[Outcome, bool]:
    """What came of a call, and whether something is gone by it."""
    if deed.removes:
        stage.make(deed.removes, namespace, DOOMED)
    outcome = call(server.ports, protocol, deed.name, deed.request(namespace), headers)
    return outcome, bool(deed.removes) and not stage.has(deed.removes, namespace, DOOMED)


def _is_as(outcome: Outcome, deed: Deed, allowed: bool) -> bool:
    if allowed:
        return outcome.code in deed.outcomes
    return outcome.code == "PERMISSION_DENIED" and CONTENT not in outcome.text


def test_rights_are_those_of_the_caller_and_not_ours(mode: str, stage: Stage, server: ApiProcess) -> None:
    assert check_matrix(stage, server, mode) == []


def strange_headers(stage: Stage, mode: str) -> dict[str, dict[str, str]]:
    """What nobody should get in with, in any mode."""
    admin = stage.token("admin")
    other_audience = stage.plane.admin.post(
        f"/api/v1/namespaces/{stage.team}/serviceaccounts/admin/token",
        {"spec": {"audiences": ["somebody-else"], "expirationSeconds": 600}},
    )["status"]["token"]
    found = {
        "nothing": {},
        "an empty header": {"Authorization": ""},
        "a scheme without a token": {"Authorization": "Bearer"},
        "a made-up token": {"Authorization": "Bearer made-up"},
        "a token cut short": {"Authorization": f"Bearer {admin[:-5]}"},
        "a token and more": {"Authorization": f"Bearer {admin} {admin}"},
        "a bare token": {"Authorization": admin},
        "another scheme": {"Authorization": f"Basic {admin}"},
        "an expired token": {"Authorization": f"Bearer {stage.plane.expired_token(stage.team, 'admin')}"},
        "a token for another audience": {"Authorization": f"Bearer {other_audience}"},
        "a very long token": {"Authorization": f"Bearer {'x' * 17_000}"},
        "headers of a proxy": {
            "X-Remote-User": "admin",
            "X-Remote-Group": "system:masters",
            "X-Forwarded-User": "admin",
            "X-Forwarded-For": "127.0.0.1",
            "Impersonate-User": "system:admin",
            "Impersonate-Group": "system:masters",
        },
    }
    if mode.startswith("oidc"):
        found |= {"a token of Kubernetes": {"Authorization": f"Bearer {admin}"}}
        found |= {"an ID token for another": {"Authorization": f"Bearer {stage.provider.token(aud='x', sub='admin')}"}}
        found |= {"an old ID token": {"Authorization": f"Bearer {stage.provider.token(exp=1, sub='admin')}"}}
    else:
        found |= {"an ID token": {"Authorization": f"Bearer {stage.provider.token(sub='admin')}"}}
    return found


def check_strangers(stage: Stage, server: ApiProcess, mode: str) -> None:
    deed = READ_TEMPLATE
    for what, headers in strange_headers(stage, mode).items():
        for protocol in PROTOCOLS:
            if protocol == "grpc" and len(headers.get("Authorization", "")) > 10_000:
                continue  # grpcio refuses such metadata itself
            outcome = call(server.ports, protocol, deed.name, deed.request(stage.team), headers)
            assert outcome.code == "UNAUTHENTICATED", f"{what}, {protocol}: {outcome}"
            assert CONTENT not in outcome.text
    admin = stage.token("admin")
    assert admin not in server.output
    assert admin.split(".")[2] not in server.output


def test_nobody_gets_in_by_other_means(mode: str, stage: Stage, server: ApiProcess) -> None:
    check_strangers(stage, server, mode)


def test_nobody_gets_in_by_other_means_than_a_token_of_ours(stage: Stage, token_server: ApiProcess) -> None:
    check_strangers(stage, token_server, "token")


def test_headers_that_a_proxy_would_set_change_nothing(mode: str, stage: Stage, server: ApiProcess) -> None:
    lies = {
        "X-Remote-User": "admin",
        "X-Remote-Group": "system:masters",
        "X-Forwarded-User": "admin",
        "Impersonate-User": "system:admin",
        "Impersonate-Group": "system:masters",
        "Grpc-Metadata-Authorization": f"Bearer {stage.token('admin')}",
        "Grpcgateway-Authorization": f"Bearer {stage.token('admin')}",
    }
    headers, deed = {**lies, **stage.headers(mode, "nobody")}, LIST_TEMPLATES
    for protocol in PROTOCOLS:
        outcome = call(server.ports, protocol, deed.name, deed.request(stage.team), headers)
        assert outcome.code == "PERMISSION_DENIED"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("token", [OWN_TOKEN, TEAM_TOKEN])
@pytest.mark.parametrize("scheme", ["", "Bearer "])
def test_a_token_of_ours_is_good_for_everything_or_for_its_namespaces(
    protocol: str, token: str, scheme: str, stage: Stage, token_server: ApiProcess
) -> None:
    headers, get, everywhere = {"Authorization": f"{scheme}{token}"}, LIST_TEMPLATES, LIST_ALL_TEMPLATES
    codes = [
        call(token_server.ports, protocol, deed.name, deed.request(place), headers).code
        for deed, place in [(get, stage.team), (get, stage.other), (everywhere, "")]
    ]
    assert codes == (["OK", "OK", "OK"] if token == OWN_TOKEN else ["OK", "PERMISSION_DENIED", "PERMISSION_DENIED"])
    assert token not in token_server.output


@pytest.mark.parametrize("reviewing", ["kubernetes", "oidc"])
def test_while_the_reviewer_is_away_nobody_is_let_in(reviewing: str, stage: Stage) -> None:
    """A server that may not ask about others: its reviews are refused, and so is every caller, with 503."""
    powerless = stage.plane.kubeconfig("powerless", token=stage.token("nobody"))
    weak = Stage(stage.plane, stage.team, stage.other, powerless, stage.provider, stage.folder)
    with weak.server(reviewing) as server:
        headers, deed = stage.headers(reviewing, "admin"), LIST_TEMPLATES
        for protocol in PROTOCOLS:
            assert call(server.ports, protocol, deed.name, deed.request(stage.team), headers).code == "UNAVAILABLE"


def test_probes_metrics_and_documents_need_no_token_and_tell_nothing(stage: Stage, token_server: ApiProcess) -> None:
    deed = READ_TEMPLATE
    call(token_server.ports, "http", deed.name, deed.request(stage.team), {"Authorization": OWN_TOKEN})
    for path in ("/healthz", "/readyz", "/livez", "/swagger/openapi.json", "/swagger-ui/"):
        token_server.rest.raw("GET", path)
    metrics = token_server.rest.raw("GET", "/metrics").decode()
    assert stage.team not in metrics
    assert CONTENT not in metrics
