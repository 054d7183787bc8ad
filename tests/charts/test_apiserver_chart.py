"""The chart `kuberay-apiserver`: what its values mean."""

from __future__ import annotations

from typing import Final

import pytest

from support.helm_charts import Chart, Json, the

NAME: Final = "kuberay-apiserver"
CHART: Final = Chart(NAME)


def containers(documents: list[Json]) -> dict[str, Json]:
    pod = the(documents, "Deployment", NAME)["spec"]["template"]["spec"]
    return {container["name"]: container for container in pod["containers"]}


def test_the_default_token_is_random_and_in_a_secret() -> None:
    tokens = {the(CHART.render({}), "Secret", f"{NAME}-token")["stringData"]["SECURITY_TOKEN"] for _ in range(2)}
    assert len(tokens) == 2
    proxy = containers(CHART.rendered("defaults"))["security-proxy-container"]
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
