"""Who may do what: every mode of `--auth`, people with different rights, calls that need them, two namespaces."""

from __future__ import annotations

import http.client
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.fixtures import make_namespace, remove_namespace
from support.api_access import (
    HEADS,
    READ,
    SERVER,
    WRITE,
    Outcome,
    call,
    grant,
    grant_everywhere,
    group,
    make_account,
    revoke_everywhere,
    service_account,
    user,
)
from support.api_processes import ApiProcess, api_server_on
from support.identity_providers import CLIENT, ScriptedProvider, a_provider_in_a_thread

TEMPLATES, CLUSTERS = "proto.ComputeTemplateService", "proto.ClusterService"
SUBMISSIONS = "proto.RayJobSubmissionService"
OWN_TOKEN, TEAM_TOKEN = "the-servers-own-token", "a-token-for-one-team"
CONTENT = "content.example/of-a-template"
"""What only those may see who may read it."""
PROTOCOLS = ("grpc", "http")
ALLOWED = frozenset({"OK", "NOT_FOUND", "UNKNOWN"})
"""Codes of calls that got as far as the object; none of ours is there, or somebody else made it."""


@dataclass(frozen=True)
class Deed:
    """A call, and what right it needs."""

    name: str
    request: Callable[[str], dict[str, Any]]
    writes: bool = False
    everywhere: bool = False
    outcomes: frozenset[str] = ALLOWED
    """What comes of it for those who may."""


def a_submission(namespace: str) -> dict[str, Any]:
    return {"namespace": namespace, "clustername": "standing", "jobsubmission": {"entrypoint": "true"}}


def of_a_submission(namespace: str) -> dict[str, Any]:
    return {"namespace": namespace, "clustername": "standing", "submissionid": "missing"}


def a_template(namespace: str) -> dict[str, Any]:
    name = f"t-{uuid.uuid4().hex[:8]}"
    return {"namespace": namespace, "computeTemplate": {"name": name, "namespace": namespace, "cpu": 1, "memory": 1}}


def a_cluster(namespace: str) -> dict[str, Any]:
    head = {"computeTemplate": "standing", "rayStartParams": {"a": "b"}}
    spec = {"headGroupSpec": head}
    name = f"c-{uuid.uuid4().hex[:8]}"
    return {
        "namespace": namespace,
        "cluster": {"name": name, "namespace": namespace, "user": "u", "clusterSpec": spec},
    }


DEEDS = [
    Deed(f"{TEMPLATES}.GetComputeTemplate", lambda namespace: {"namespace": namespace, "name": "standing"}),
    Deed(f"{TEMPLATES}.ListComputeTemplates", lambda namespace: {"namespace": namespace}),
    Deed(f"{TEMPLATES}.CreateComputeTemplate", a_template, writes=True),
    Deed(f"{TEMPLATES}.ListAllComputeTemplates", lambda _: {}, everywhere=True),
    Deed(f"{CLUSTERS}.GetCluster", lambda namespace: {"namespace": namespace, "name": "missing"}),
    Deed(f"{CLUSTERS}.ListCluster", lambda namespace: {"namespace": namespace}),
    Deed(f"{CLUSTERS}.CreateCluster", a_cluster, writes=True),
    Deed(f"{CLUSTERS}.ListAllClusters", lambda _: {}, everywhere=True),
    *(
        Deed(f"{SUBMISSIONS}.{name}", request, writes=True, outcomes=frozenset({"UNAVAILABLE"}))
        for name, request in (
            ("SubmitRayJob", a_submission),
            ("StopRayJob", of_a_submission),
            ("DeleteRayJob", of_a_submission),
        )
    ),
]
"""The last ones ask a head that is not there, and need more than the right to read its RayCluster."""


@dataclass
class Stage:
    """Two namespaces, people in the first, and a server that may do everything in both."""

    plane: ControlPlane
    team: str
    other: str
    kubeconfig: Path
    provider: ScriptedProvider
    folder: Path

    def token(self, account: str) -> str:
        return self.plane.token(self.team, account)

    def headers(self, mode: str, person: str) -> dict[str, str]:
        """What a person shows to a server of this mode."""
        if mode.startswith("oidc"):
            return {"Authorization": f"Bearer {self.provider.token(sub=person, groups=[f'{person}s'])}"}
        return {"Authorization": f"Bearer {self.token(person)}"}

    @contextmanager
    def server(self, mode: str, **variables: str) -> Iterator[ApiProcess]:
        flags = {
            "passthrough": ["--auth=passthrough"],
            "kubernetes": ["--auth=kubernetes"],
            "kubernetes, impersonating": ["--auth=kubernetes", "--impersonate"],
            "oidc": ["--auth=oidc", *self._oidc()],
            "oidc, impersonating": ["--auth=oidc", "--impersonate", *self._oidc()],
            "token": ["--auth=token", f"--auth-token-file={self._tokens()}"],
        }[mode]
        with api_server_on(self.plane, self.folder, *flags, kubeconfig=self.kubeconfig, **variables) as server:
            yield server

    def _oidc(self) -> list[str]:
        return [
            f"--oidc-issuer-url={self.provider.url}",
            f"--oidc-client-id={CLIENT}",
            *("--oidc-username-prefix=oidc:", "--oidc-groups-claim=groups", "--oidc-groups-prefix=oidc:"),
        ]

    def _tokens(self) -> Path:
        file = self.folder / "tokens"
        file.write_text(f"{OWN_TOKEN}\n{TEAM_TOKEN} {self.team}\n")
        return file


@pytest.fixture(scope="module")
def stage(ray_crds: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    mark = uuid.uuid4().hex[:6]
    team, other = f"team-{mark}", f"other-{mark}"
    with a_provider_in_a_thread() as provider:
        _prepare(ray_crds, team, other, mark)
        kubeconfig = ray_crds.kubeconfig("apiserver", token=ray_crds.token(team, "apiserver"))
        yield Stage(ray_crds, team, other, kubeconfig, provider, tmp_path_factory.mktemp("apiserver"))
        _clean(ray_crds, team, other, mark)


MODES = ["passthrough", "kubernetes", "kubernetes, impersonating", "oidc", "oidc, impersonating"]


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


def _prepare(plane: ControlPlane, team: str, other: str, mark: str) -> None:
    for namespace in (team, other):
        make_namespace(plane, namespace)
        template = {"cpu": "1", "memory": "1", "memory_unit": "Gi", "gpu": "1", "gpu_accelerator": CONTENT}
        labels = {"ray.io/config-type": "compute-template"}
        body = {"metadata": {"name": "standing", "labels": labels}, "data": template}
        plane.admin.post(f"/api/v1/namespaces/{namespace}/configmaps", body)
        _make_ready_cluster(plane, namespace)
    for name in ("apiserver", "reader", "writer", "nobody", "admin"):
        make_account(plane, team, name)
    readers = [service_account(team, "reader"), user("oidc:reader")]
    writers = [service_account(team, "writer"), group("oidc:writers")]
    admins = [service_account(team, "admin"), user("oidc:admin")]
    grant(plane, team, "reader", READ, *readers)
    grant(plane, team, "writer", [*WRITE, HEADS], *writers)
    grant_everywhere(plane, f"admin-{mark}", [*WRITE, HEADS], *admins)
    grant_everywhere(plane, f"server-{mark}", SERVER, service_account(team, "apiserver"))


def _make_ready_cluster(plane: ControlPlane, namespace: str) -> None:
    """A RayCluster of this API that says of itself that it runs."""
    labels = {"app.kubernetes.io/managed-by": "kuberay-apiserver"}
    template = {"spec": {"containers": [{"name": "ray-head", "image": "ray"}]}}
    spec = {"headGroupSpec": {"rayStartParams": {}, "template": template}}
    body = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "standing", "labels": labels}}
    place = f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters"
    plane.admin.post(place, {**body, "spec": spec})
    plane.admin.patch(f"{place}/standing/status", {"status": {"state": "ready"}})


def _clean(plane: ControlPlane, team: str, other: str, mark: str) -> None:
    for name in (f"admin-{mark}", f"server-{mark}"):
        revoke_everywhere(plane, name)
    for namespace in (team, other):
        remove_namespace(plane, namespace)


def is_allowed(person: str, deed: Deed, is_team: bool) -> bool:
    """What the roles above say."""
    if person == "admin":
        return True
    if person == "nobody" or deed.everywhere or not is_team:
        return False
    return person == "writer" or not deed.writes


def check_matrix(stage: Stage, server: ApiProcess, mode: str) -> list[str]:
    """All that went otherwise than the roles say."""
    wrong = []
    for person in ("nobody", "reader", "writer", "admin"):
        headers = stage.headers(mode, person)
        for deed in DEEDS:
            for namespace in (stage.team, stage.other):
                for protocol in PROTOCOLS:
                    outcome = call(server.ports, protocol, deed.name, deed.request(namespace), headers)
                    expected = is_allowed(person, deed, namespace == stage.team)
                    if not _is_as(outcome, deed, expected):
                        wrong.append(f"{person} {deed.name} {namespace} {protocol}: {outcome}, allowed: {expected}")
    return wrong


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
    deed = DEEDS[0]
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
    headers, deed = {**lies, **stage.headers(mode, "nobody")}, DEEDS[1]
    for protocol in PROTOCOLS:
        outcome = call(server.ports, protocol, deed.name, deed.request(stage.team), headers)
        assert outcome.code == "PERMISSION_DENIED"


def v2_status(server: ApiProcess, headers: dict[str, str], namespace: str, method: str = "GET") -> int:
    place = f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters" if namespace else "/apis/ray.io/v1/rayclusters"
    return _v2_status(server, headers, place, method)


def _v2_status(server: ApiProcess, headers: dict[str, str], place: str, method: str = "GET") -> int:
    connection = http.client.HTTPConnection(LOOPBACK, server.ports.http, timeout=60)
    try:
        connection.request(method, place, "{}" if method == "POST" else None, headers)
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def test_rights_count_in_v2_as_well(mode: str, stage: Stage, server: ApiProcess) -> None:
    """Also with headers that would name somebody else, which count for nobody but who shows an own token."""
    lies = {"Impersonate-User": "system:admin", "Impersonate-Group": "system:masters", "X-Remote-User": "admin"}
    statuses = {
        person: [v2_status(server, stage.headers(mode, person), place) for place in (stage.team, stage.other, "")]
        for person in ("nobody", "reader", "admin")
    }
    assert statuses == {"nobody": [403, 403, 403], "reader": [200, 403, 403], "admin": [200, 200, 200]}
    assert v2_status(server, stage.headers(mode, "reader"), stage.team, "POST") == 403
    assert v2_status(server, {}, stage.team) == 401
    assert v2_status(server, {"Authorization": "Bearer made-up"}, stage.team) == 401
    assert v2_status(server, {**stage.headers(mode, "nobody"), **lies}, stage.team) == 403


OTHER_WAYS = [
    "rayclusters/namespaces/$team",
    "watch/rayclusters?timeoutSeconds=1",
    "watch/rayclusters/namespaces/$team?timeoutSeconds=1",
    "watch/namespaces/$other/rayclusters?timeoutSeconds=1",
    "namespaces/$other/rayclusters?watch=true&timeoutSeconds=1",
    "namespaces/$other/rayclusters?fieldSelector=metadata.namespace%3D$team",
    "namespaces/$other/rayclusters/namespaces/$team",
    "namespaces/$other/../$team/rayclusters/../../$other/rayclusters",
]
"""To what is not in the caller's namespace, by paths that name it as well."""


@pytest.mark.parametrize("way", OTHER_WAYS)
def test_no_other_spelling_of_a_path_gives_more_rights(way: str, mode: str, stage: Stage, server: ApiProcess) -> None:
    assert _status_of(stage, server, stage.headers(mode, "reader"), way) >= 300


@pytest.mark.parametrize("way", OTHER_WAYS)
def test_no_other_spelling_of_a_path_gives_a_token_more_namespaces(
    way: str, stage: Stage, token_server: ApiProcess
) -> None:
    assert _status_of(stage, token_server, {"Authorization": TEAM_TOKEN}, way) >= 300


def _status_of(stage: Stage, server: ApiProcess, headers: dict[str, str], way: str) -> int:
    path = way.replace("$team", stage.team).replace("$other", stage.other)
    return _v2_status(server, headers, f"/apis/ray.io/v1/{path}")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("token", [OWN_TOKEN, TEAM_TOKEN])
@pytest.mark.parametrize("scheme", ["", "Bearer "])
def test_a_token_of_ours_is_good_for_everything_or_for_its_namespaces(
    protocol: str, token: str, scheme: str, stage: Stage, token_server: ApiProcess
) -> None:
    headers, get, everywhere = {"Authorization": f"{scheme}{token}"}, DEEDS[1], DEEDS[3]
    codes = [
        call(token_server.ports, protocol, deed.name, deed.request(place), headers).code
        for deed, place in [(get, stage.team), (get, stage.other), (everywhere, "")]
    ]
    assert codes == (["OK", "OK", "OK"] if token == OWN_TOKEN else ["OK", "PERMISSION_DENIED", "PERMISSION_DENIED"])
    statuses = [v2_status(token_server, headers, place) for place in (stage.team, stage.other, "")]
    assert statuses == ([200, 200, 200] if token == OWN_TOKEN else [200, 403, 403])
    assert token not in token_server.output


@pytest.mark.parametrize("reviewing", ["kubernetes", "oidc"])
def test_while_the_reviewer_is_away_nobody_is_let_in(reviewing: str, stage: Stage) -> None:
    """A server that may not ask about others: its reviews are refused, and so is every caller, with 503."""
    powerless = stage.plane.kubeconfig("powerless", token=stage.token("nobody"))
    weak = Stage(stage.plane, stage.team, stage.other, powerless, stage.provider, stage.folder)
    with weak.server(reviewing) as server:
        headers, deed = stage.headers(reviewing, "admin"), DEEDS[1]
        for protocol in PROTOCOLS:
            assert call(server.ports, protocol, deed.name, deed.request(stage.team), headers).code == "UNAVAILABLE"
        assert v2_status(server, headers, stage.team) == 503


def test_probes_metrics_and_documents_need_no_token_and_tell_nothing(stage: Stage, token_server: ApiProcess) -> None:
    deed = DEEDS[0]
    call(token_server.ports, "http", deed.name, deed.request(stage.team), {"Authorization": OWN_TOKEN})
    for path in ("/healthz", "/readyz", "/livez", "/swagger/openapi.json", "/swagger-ui/"):
        token_server.rest.raw("GET", path)
    metrics = token_server.rest.raw("GET", "/metrics").decode()
    assert stage.team not in metrics
    assert CONTENT not in metrics
