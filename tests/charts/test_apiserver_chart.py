"""The chart `kuberay-apiserver`: what its values mean."""

from __future__ import annotations

from typing import Final

import pytest

from raykeeper.apiserver.settings import ApiServerSettings
from raykeeper.apiserver.sources import read_settings
from raykeeper.securityproxy.settings import SecurityProxySettings
from raykeeper.securityproxy.settings import read_settings as read_proxy_settings
from support.helm_charts import Chart, Json, the

NAME: Final = "kuberay-apiserver"
CHART: Final = Chart(NAME)
PROXY: Final = "security-proxy-container"
OURS: Final = ["raykeeper", "security-proxy"]


def containers(documents: list[Json]) -> dict[str, Json]:
    (deployment,) = (item for item in documents if item["kind"] == "Deployment")
    return {container["name"]: container for container in deployment["spec"]["template"]["spec"]["containers"]}


def variables(container: Json) -> dict[str, str]:
    return {one["name"]: one.get("value", "a-token-of-the-secret") for one in container.get("env", [])}


def server_settings(documents: list[Json]) -> ApiServerSettings:
    """What the API server makes of the arguments and variables of its container."""
    server = next(iter(containers(documents).values()))
    as_kuberay = server["command"] == ["/workspace/apiserver/kuberay-apiserver"]
    return read_settings(server["args"], variables(server), as_kuberay=as_kuberay)


def proxy_settings(documents: list[Json]) -> SecurityProxySettings:
    return read_proxy_settings(variables(containers(documents)[PROXY]))


def reachable_ports(documents: list[Json]) -> dict[str, set[int]]:
    """What listens at the pod's address: ports of the API, and the one for probes and metrics."""
    settings = server_settings(documents)
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
def test_both_programs_take_what_the_chart_gives_them_and_listen_where_others_look(case: str) -> None:
    documents = CHART.rendered(case)
    ports, (server, *_) = reachable_ports(documents), containers(documents).values()
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


def test_behind_the_proxy_nobody_else_reaches_the_api() -> None:
    settings = server_settings(CHART.rendered("defaults"))
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


def test_the_service_follows_the_ports_of_the_container() -> None:
    ports = [{"name": "http", "containerPort": 9000}, {"containerPort": 9500}]
    documents = CHART.render({"security": None, "containerPort": ports})
    targets = the(documents, "Service", f"{NAME}-service")["spec"]["ports"]
    assert [port["targetPort"] for port in targets] == [9000, 8887]
    assert server_settings(documents).http.port == 9000


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
