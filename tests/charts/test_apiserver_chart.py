"""The chart `kuberay-apiserver`: what its values mean."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from raykeeper.apiserver.settings import ApiAccessSettings, ApiServerSettings
from raykeeper.apiserver.sources import read_settings
from raykeeper.securityproxy.settings import SecurityProxySettings
from raykeeper.securityproxy.settings import read_settings as read_proxy_settings
from support.helm_charts import Chart, Json, the

NAME: Final = "kuberay-apiserver"
CHART: Final = Chart(NAME)
PROXY: Final = "security-proxy-container"
OURS: Final = ["raykeeper", "security-proxy"]
TOKEN_FILE: Final = "/var/run/raykeeper/token"


def containers(documents: list[Json]) -> dict[str, Json]:
    (deployment,) = (item for item in documents if item["kind"] == "Deployment")
    return {container["name"]: container for container in deployment["spec"]["template"]["spec"]["containers"]}


def variables(container: Json) -> dict[str, str]:
    return {one["name"]: one.get("value", "a-token-of-the-secret") for one in container.get("env", [])}


def server_settings(documents: list[Json], folder: Path) -> ApiServerSettings:
    """What the API server makes of the arguments and variables of its container, and of the file with its tokens."""
    server = next(iter(containers(documents).values()))
    as_kuberay = server["command"] == ["/workspace/apiserver/kuberay-apiserver"]
    (folder / "token").write_text("0123456789abcdef\nfedcba9876543210 team-a\n")
    arguments = [argument.replace(TOKEN_FILE, str(folder / "token")) for argument in server["args"]]
    return read_settings(arguments, variables(server), as_kuberay=as_kuberay)


def proxy_settings(documents: list[Json]) -> SecurityProxySettings:
    return read_proxy_settings(variables(containers(documents)[PROXY]))


def reachable_ports(documents: list[Json], settings: ApiServerSettings) -> dict[str, set[int]]:
    """What listens at the pod's address: ports of the API, and the one for probes and metrics."""
    assert settings.http.host in (None, "127.0.0.1")
    if PROXY not in containers(documents):
        return {"api": {settings.http.port, settings.grpc.port}, "monitoring": {settings.http.port}}
    proxy = proxy_settings(documents)
    assert (settings.http.host, settings.grpc.host) == ("127.0.0.1", "127.0.0.1"), "nobody gets past the proxy"
    assert (proxy.http.remote, proxy.grpc and proxy.grpc.remote) == (settings.http.port, settings.grpc.port)
    assert settings.metrics is not None
    assert settings.metrics.host is None
    return {"api": {proxy.http.local, proxy.grpc.local if proxy.grpc else 0}, "monitoring": {settings.metrics.port}}


@pytest.mark.parametrize("case", CHART.cases)
def test_both_programs_take_what_the_chart_gives_them_and_listen_where_others_look(case: str, tmp_path: Path) -> None:
    documents = CHART.rendered(case)
    ports = reachable_ports(documents, server_settings(documents, tmp_path))
    (server, *_) = containers(documents).values()
    declared = {port["containerPort"] for port in server["ports"]}
    for probe in ("livenessProbe", "readinessProbe"):
        assert {server[probe]["httpGet"]["port"]} == ports["monitoring"] <= declared
    (service,) = (item for item in documents if item["kind"] == "Service")
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports["api"]
    assert {int(service["metadata"]["annotations"]["prometheus.io/port"])} == ports["monitoring"]
    for monitor in (item for item in documents if item["kind"] == "ServiceMonitor"):
        assert {endpoint["targetPort"] for endpoint in monitor["spec"]["endpoints"]} == ports["monitoring"]
    for policy in (item for item in documents if item["kind"] == "NetworkPolicy"):
        (rule,) = policy["spec"]["ingress"]
        assert {port["port"] for port in rule["ports"]} == ports["api"] | ports["monitoring"]


def test_behind_the_proxy_nobody_else_reaches_the_api(tmp_path: Path) -> None:
    settings = server_settings(CHART.rendered("defaults"), tmp_path)
    assert settings.access.mode == "none", "the proxy has asked for the token"
    assert not settings.access.answers_localhost_only, "pages that show the token may call"


@pytest.mark.parametrize("repository", ["quay.io/kuberay/security-proxy", "docker.io/kuberay/security-proxy"])
def test_kuberays_own_proxy_is_replaced_by_ours(repository: str) -> None:
    """As its values.yaml names it: its image lacks our program, and is no longer built."""
    values = {"image": {"repository": "example.com/raykeeper", "tag": "v1"}}
    documents = CHART.render({**values, "security": {"proxy": {"repository": repository, "tag": "nightly"}}})
    proxy = containers(documents)[PROXY]
    assert (proxy["image"], proxy["command"]) == ("example.com/raykeeper:v1", OURS)


def test_another_image_runs_the_command_of_the_values_or_its_own() -> None:
    assert "command" not in containers(CHART.rendered("proxy-image"))[PROXY]
    mirrored = containers(CHART.render({"security": {"proxy": {"repository": "example.com/copy"}}}))[PROXY]
    assert mirrored["command"] == OURS
    assert containers(CHART.rendered("half-of-the-proxy"))[PROXY]["command"] == OURS


def test_the_service_follows_the_ports_of_the_container(tmp_path: Path) -> None:
    ports = [{"name": "http", "containerPort": 9000}, {"containerPort": 9500}]
    documents = CHART.render({"security": None, "containerPort": ports})
    targets = the(documents, "Service", f"{NAME}-service")["spec"]["ports"]
    assert [port["targetPort"] for port in targets] == [9000, 8887]
    assert server_settings(documents, tmp_path).http.port == 9000


def test_who_may_call_reaches_the_settings(tmp_path: Path) -> None:
    def access(case: str) -> ApiAccessSettings:
        return server_settings(CHART.rendered(case), tmp_path).access

    assert [len(token.namespaces) for token in access("auth-token").tokens] == [0, 1]
    assert access("auth-passthrough").mode == "passthrough"
    kubernetes = access("auth-kubernetes")
    assert (kubernetes.mode, kubernetes.audiences, kubernetes.impersonate) == (
        "kubernetes",
        ("ray-api", "other"),
        False,
    )
    assert access("auth-impersonate").impersonate
    oidc = access("auth-oidc").oidc
    assert (oidc.issuer_url, oidc.client_id) == ("https://login.example.org", "ray")
    assert (oidc.username_claim, oidc.username_prefix) == ("email", "-")
    assert (oidc.groups_claim, oidc.groups_prefix) == ("groups", "oidc:")
    assert sorted(oidc.required_claims) == [("hd", "example.org"), ("level", "2")]
    assert not access("auth-none").is_undecided
    assert access("no-proxy").is_undecided, "the log warns"


def test_files_of_a_mode_are_mounted_where_the_server_looks() -> None:
    for case, path in {"auth-token": TOKEN_FILE, "auth-oidc": "/etc/raykeeper/oidc/ca.crt"}.items():
        (deployment,) = (item for item in CHART.rendered(case) if item["kind"] == "Deployment")
        pod = deployment["spec"]["template"]["spec"]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        mounts = {mount["mountPath"]: volumes[mount["name"]] for mount in pod["containers"][0]["volumeMounts"]}
        folder, _, name = path.rpartition("/")
        (source,) = (value for key, value in mounts[folder].items() if key != "name")
        assert [item["path"] for item in source["items"]] == [name]


def test_the_token_of_a_mode_is_random_or_of_the_values() -> None:
    tokens = {the(CHART.rendered(case), "Secret", f"{NAME}-token")["stringData"]["token"] for case in TOKEN_CASES}
    assert "0123456789abcdef" in tokens
    assert len(tokens) == 2
    assert not [item for item in CHART.rendered("auth-token-elsewhere") if item["kind"] == "Secret"]


TOKEN_CASES: Final = ("auth-token", "auth-token-given")
ABOUT_CALLERS: Final[dict[str, set[tuple[str, str]]]] = {
    "defaults": set(),
    "auth-token": set(),
    "auth-none": set(),
    "auth-passthrough": set(),
    "auth-kubernetes": {("tokenreviews", "create"), ("subjectaccessreviews", "create")},
    "auth-kubernetes-one-namespace": {("tokenreviews", "create"), ("subjectaccessreviews", "create")},
    "auth-oidc": {("subjectaccessreviews", "create")},
    "auth-impersonate": {("tokenreviews", "create")}
    | {(who, "impersonate") for who in ("users", "groups", "serviceaccounts")},
}


@pytest.mark.parametrize("case", ABOUT_CALLERS)
def test_rights_about_callers_are_given_to_the_modes_that_need_them(case: str) -> None:
    documents = CHART.rendered(case)
    rules = [rule for item in documents for rule in item.get("rules") or [] if "Role" in item["kind"]]
    given = {(kind, verb) for rule in rules for kind in rule["resources"] for verb in rule["verbs"]}
    about_callers = {right for right in given if right[1] == "impersonate" or right[0].endswith("reviews")}
    assert about_callers == ABOUT_CALLERS[case]
    acts_as_caller = case in ("auth-passthrough", "auth-impersonate")
    assert (given - about_callers == {("services", "list")}) is acts_as_caller
    bound = {item["roleRef"]["name"] for item in documents if item["kind"].endswith("Binding")}
    assert bound == {item["metadata"]["name"] for item in documents if item["kind"] in ("Role", "ClusterRole")}


def test_the_default_token_is_random_and_in_a_secret() -> None:
    tokens = {the(CHART.render({}), "Secret", f"{NAME}-token")["stringData"]["SECURITY_TOKEN"] for _ in range(2)}
    assert len(tokens) == 2
    proxy = containers(CHART.rendered("defaults"))[PROXY]
    (token,) = (variable for variable in proxy["env"] if variable["name"] == "SECURITY_TOKEN")
    assert token["valueFrom"] == {"secretKeyRef": {"name": f"{NAME}-token", "key": "SECURITY_TOKEN"}}


@pytest.mark.parametrize("env", [None, {"SECURITY_TOKEN": None}, {"SECURITY_TOKEN": ""}])
def test_a_token_that_is_null_is_random_too(env: Json | None) -> None:
    secret = the(CHART.render({"security": {"env": env}}), "Secret", f"{NAME}-token")
    assert len(secret["stringData"]["SECURITY_TOKEN"]) == 40


def test_without_the_proxy_the_service_leads_to_the_api_server() -> None:
    documents = CHART.rendered("no-proxy")
    assert list(containers(documents)) == [f"{NAME}-container"]
    ports = the(documents, "Service", f"{NAME}-service")["spec"]["ports"]
    assert [port["targetPort"] for port in ports] == [8888, 8887]
    assert not any(item["kind"] == "Secret" for item in documents)


def test_the_ingress_of_the_tenants_leads_to_the_service() -> None:
    (rule,) = the(CHART.rendered("tenants"), "Ingress", NAME)["spec"]["rules"]
    assert rule["host"] == "ray-api.example.com"
    (path,) = rule["http"]["paths"]
    assert path["backend"]["service"] == {"name": f"{NAME}-service", "port": {"number": 8888}}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"ingress": {"enabled": True}, "route": {"enabled": True}}, "ingress.enabled and route.enabled exclude"),
        (
            {"security": {"existingSecret": "a", "env": {"SECURITY_TOKEN": "b"}}},
            "leave security.env.SECURITY_TOKEN out",
        ),
        ({"securityProxy": {}}, "securityProxy: there is no such value; did you mean security"),
        ({"ingress": {"host": "a"}}, "ingress.host: there is no such value; did you mean ingress.hosts?"),
    ],
)
def test_a_wrong_value_is_named(values: Json, message: str) -> None:
    assert message in CHART.refusal(values)
