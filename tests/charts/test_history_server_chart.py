"""The charts `ray-history-server`, `ray-job` and `ray-service`: what their values mean."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from raykeeper.history.settings import HistorySettings
from raykeeper.history.sources import read_settings
from support.helm_charts import Chart, Json, the

NAME: Final = "ray-history-server"
CHART: Final = Chart(NAME)
JOB: Final = Chart("ray-job")
SERVICE: Final = Chart("ray-service")


def server(documents: list[Json]) -> Json:
    (deployment,) = (item for item in documents if item["kind"] == "Deployment")
    containers = deployment["spec"]["template"]["spec"]["containers"]
    (found,) = (container for container in containers if container["name"] == "history-server")
    return dict(found)


MOUNTED = {
    "/var/run/raykeeper/token": "0123456789abcdef",
    "/var/run/raykeeper-cookies/keys": "k" * 48,
    "/etc/raykeeper/namespaces/namespaces.yaml": "everybody: [shared]",
}


def settings_of(container: Json, folder: Path, files: Mapping[str, str] | None = None) -> HistorySettings:
    """What the history server makes of the container's arguments and variables, and of files by their paths."""
    arguments = list(container["args"])
    for path, text in {**MOUNTED, **(files or {})}.items():
        (folder / Path(path).name).write_text(text)
        arguments = [argument.replace(path, str(folder / Path(path).name)) for argument in arguments]
    return read_settings(arguments, {one["name"]: one.get("value", "of-a-secret") for one in container["env"]})


def mounted_files(documents: list[Json]) -> dict[str, str]:
    """What is mounted for alerts and retention."""
    texts = {name: text for one in documents for name, text in (one.get("data") or {}).items()}
    return {f"/etc/raykeeper/{name}/{name}.yaml": texts.get(f"{name}.yaml", "") for name in ("alerts", "retention")}


@pytest.mark.parametrize("case", CHART.cases)
def test_the_history_server_takes_what_the_chart_gives_it(case: str, tmp_path: Path) -> None:
    documents = CHART.rendered(case)
    settings = settings_of(server(documents), tmp_path, mounted_files(documents))
    assert settings.bind == ":8080"
    assert not settings.access.is_undecided


def test_receivers_of_alerts_reach_the_settings_and_a_change_restarts_the_pod(tmp_path: Path) -> None:
    documents = CHART.rendered("job-alerts")
    alerts = settings_of(server(documents), tmp_path, mounted_files(documents)).alerts
    assert alerts is not None
    assert alerts.receivers[0].namespaces == ("team-a",)
    assert {mount["mountPath"] for mount in server(documents)["volumeMounts"]} >= {"/etc/raykeeper/alert-secrets"}
    pod = the(documents, "Deployment", NAME)["spec"]["template"]
    assert set(pod["metadata"]["annotations"]) == {"note", "raykeeper.io/alerts"}


def test_how_long_sessions_are_kept_reaches_the_settings(tmp_path: Path) -> None:
    documents = CHART.rendered("retention")
    policy = settings_of(server(documents), tmp_path, mounted_files(documents)).retention
    assert policy is not None
    assert policy.rule_for("ci-1").any_age == timedelta(days=3)


def test_the_values_reach_the_settings(tmp_path: Path) -> None:
    large = settings_of(server(CHART.rendered("large")), tmp_path)
    assert large.store.url == "gs://history"
    namespaces = settings_of(server(CHART.rendered("two-namespaces")), tmp_path).kubernetes.namespaces
    assert tuple(namespaces) == ("ray-team-a", "ray-team-b")


def test_a_store_is_set_by_the_names_of_alibabas_documentation(tmp_path: Path) -> None:
    documents = CHART.rendered("ack")
    store = settings_of(server(documents), tmp_path).store
    assert (store.backend, store.root_dir) == ("aliyunoss", "ray/log")
    assert {one["name"]: one["value"] for one in server(documents)["env"]}["OSS_BUCKET"] == "history"
    account = the(documents, "ServiceAccount", "ray-historyserver")
    assert account["metadata"]["annotations"] == {"pod-identity.alibabacloud.com/role-name": "ray-history"}
    pod = the(documents, "Deployment", NAME)["spec"]["template"]
    assert pod["metadata"]["labels"]["pod-identity.alibabacloud.com/injection"] == "on"
    assert pod["spec"]["serviceAccountName"] == "ray-historyserver"


def test_people_sign_in_as_in_alibabas_documentation(tmp_path: Path) -> None:
    """Its Secret `webapp-secret`, its CallbackServiceName, its own provider."""
    container = server(CHART.rendered("ack-login"))
    access = settings_of(container, tmp_path).access
    assert (access.mode, access.login.public_url) == ("ram", "http://localhost:8080")
    assert access.login.oidc.issuer_url == "https://oauth.aliyun.com"
    assert access.login.rules.uids == {"2000000000000002"}
    keys = {one["name"]: one["valueFrom"]["secretKeyRef"] for one in container["env"] if "valueFrom" in one}
    assert keys == {
        "RAYKEEPER_OIDC_CLIENT_ID": {"name": "webapp-secret", "key": "webapp-id"},
        "RAYKEEPER_OIDC_CLIENT_SECRET": {"name": "webapp-secret", "key": "webapp-secret"},
    }


def test_rights_to_review_are_given_to_those_who_need_them() -> None:
    reviews = {"kubernetes-tokens": 2, "login-with-oidc": 2, "login-with-reviews": 1, "ack-login": 0, "token": 0}
    for case, rules in reviews.items():
        documents = CHART.rendered(case)
        roles = [
            one for one in documents if one["kind"] == "ClusterRole" and one["metadata"]["name"].endswith("-reviews")
        ]
        assert sum(len(role["rules"]) for role in roles) == rules, case
        pod = the(documents, "Deployment", NAME)["spec"]["template"]["spec"]
        assert pod["automountServiceAccountToken"] or not rules


def test_what_people_see_reaches_the_settings(tmp_path: Path) -> None:
    access = settings_of(server(CHART.rendered("login-with-oidc")), tmp_path).access
    assert (access.mode, sorted(access.also), access.audiences) == ("oidc", ["kubernetes", "token"], ("history",))
    login = access.login
    assert (login.public_url, login.session_seconds, login.max_seconds) == ("https://history.example.org", 300, 28800)
    assert (sorted(login.rules.emails), sorted(login.rules.groups)) == (["*@example.org"], ["ray"])
    assert login.scopes == ("openid", "profile", "email", "groups")
    assert access.is_audited
    configured = the(CHART.rendered("login-with-oidc"), "ConfigMap", f"{NAME}-namespaces")["data"]["namespaces.yaml"]
    assert yaml.safe_load(configured)["groups"]["admins"] == ["*"]


def test_the_role_needs_no_webhook_where_the_provider_is_known() -> None:
    documents = CHART.rendered("ack-with-provider")
    env = {one["name"]: one["value"] for one in server(documents)["env"]}
    assert env["ALIBABA_CLOUD_ROLE_ARN"] == "acs:ram::1234567890:role/ray-history"
    assert env["ALIBABA_CLOUD_OIDC_TOKEN_FILE"] == "/var/run/secrets/ack.alibabacloud.com/rrsa-tokens/token"
    pod = the(documents, "Deployment", NAME)["spec"]["template"]
    assert "pod-identity.alibabacloud.com/injection" not in pod["metadata"]["labels"]
    (volume,) = (one for one in pod["spec"]["volumes"] if one["name"] == "rrsa-oidc-token")
    assert volume["projected"]["sources"][0]["serviceAccountToken"]["audience"] == "sts.aliyuncs.com"


def test_the_same_block_of_history_fits_into_both_charts() -> None:
    values = CHART.cases["ack"]["values"]
    assert Chart("kuberay-operator").render(values)


def test_the_roles_are_for_the_namespaces_that_are_recorded() -> None:
    documents = CHART.rendered("two-namespaces")
    roles = [item["metadata"]["namespace"] for item in documents if item["kind"] == "Role"]
    assert sorted(roles) == ["ray-system", "ray-team-a", "ray-team-b"]
    assert not any(item["kind"].startswith("ClusterRole") for item in documents)


def test_two_installations_do_not_share_a_cluster_role() -> None:
    values = CHART.cases["s3"]["values"]
    names = {
        the(CHART.render(values, namespace), "ClusterRole", f"{namespace}-{NAME}")["metadata"]["name"]
        for namespace in ("a", "b")
    }
    assert len(names) == 2


@pytest.mark.parametrize(
    ("chart", "values", "message"),
    [
        (CHART, {}, "say where the history is: store.url, such as s3://bucket/prefix"),
        (CHART, {"store": {"url": "s3://a"}, "history": {"OSSBucket": "b"}}, "history.OSSBucket and store both say"),
        (CHART, {"store": {"url": "s3://a", "backend": "s3"}}, "store.url and store.backend exclude each other"),
        (
            CHART,
            {"store": {"url": "s3://a"}, "auth": {"token": "short"}},
            "auth.token must have at least 16 characters",
        ),
        (CHART, {"store": {"url": "s3://a"}, "auth": {"mode": "none", "token": "a"}}, "auth.mode none uses no token"),
        (CHART, {"store": {"url": "s3://a"}, "auth": {"mode": "oauth"}}, "auth.mode must be one of"),
        (CHART, {"store": {"url": "s3://a"}, "auth": {"mode": "oidc"}}, "auth.publicUrl: auth.mode oidc needs it"),
        (
            CHART,
            {"store": {"url": "s3://a"}, "auth": {"mode": "ram", "publicUrl": "http://a"}},
            "say who may see what by auth.allow",
        ),
        (CHART, {"store": {"url": "s3://a"}, "auth": {"also": ["kubernetes"]}}, "auth.mode token takes nothing else"),
        (CHART, {"store": {"uri": "s3://a"}}, "store.uri: there is no such value; did you mean store.url?"),
        (CHART, {"store": {"url": "s3://a"}, "httpRoute": {"enabled": True}}, "needs httpRoute.parentRefs"),
        (JOB, {}, "entrypoint is empty: say what the job runs"),
        (JOB, {"entryPoint": "a"}, "entryPoint: there is no such value; did you mean entrypoint?"),
        (SERVICE, {}, "serveConfigV2 is empty: say what Serve runs"),
        (SERVICE, {"serveConfig": "a"}, "serveConfig: there is no such value; did you mean serveConfigV2?"),
    ],
)
def test_wrong_values_fail_with_the_cure(chart: Chart, values: Json, message: str) -> None:
    assert message in chart.refusal(values)


def test_a_job_has_the_cluster_of_the_cluster_chart() -> None:
    values: dict[str, Any] = {"head": {"resources": {"limits": {"cpu": 2, "memory": "4Gi"}}}, "worker": {"replicas": 3}}
    (cluster,) = Chart("ray-cluster").render(values, release="same")
    (job,) = JOB.render({**values, "entrypoint": "a"}, release="same")
    told_apart = yaml.safe_dump(cluster["spec"]).replace("ray-cluster-", "ray-job-")
    assert yaml.safe_load(told_apart) == job["spec"]["rayClusterSpec"]


def test_the_config_of_serve_may_be_a_map_or_text() -> None:
    (made,) = SERVICE.rendered("small")
    assert yaml.safe_load(made["spec"]["serveConfigV2"])["applications"][0]["name"] == "app"
    (said,) = SERVICE.rendered("complete")
    assert said["spec"]["serveConfigV2"] == "applications: [{name: app}]\n"


def test_a_job_in_an_existing_cluster_has_no_cluster_of_its_own() -> None:
    (job,) = JOB.rendered("existing-cluster")
    assert "rayClusterSpec" not in job["spec"]
    assert "shutdownAfterJobFinishes" not in job["spec"]
