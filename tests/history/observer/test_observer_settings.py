"""Whether Kubernetes is observed, where, and under which Lease."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from raykeeper.errors import Misconfigured
from raykeeper.history import program
from raykeeper.history.observer.leader import lease_name, observing
from raykeeper.history.program import is_wanted
from raykeeper.history.settings import FactsMode, KubernetesSettings
from raykeeper.history.sources import read_settings
from raykeeper.storage.settings.urls import parse_store_url

STORE = "--store=file:///history"
POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
CONFIG = Path("/some/kubeconfig")


def test_flags_and_variables_say_what_is_observed() -> None:
    flags = (STORE, "--kubernetes-facts=on", "--kubeconfig=/some/kubeconfig", "--kubernetes-namespaces=team-b, team-a")
    environment = {"RAYKEEPER_KUBERNETES_LEASE_NAMESPACE": "ops", "RAYKEEPER_KUBERNETES_FACTS": "off"}
    assert read_settings(flags, environment).kubernetes == KubernetesSettings("on", CONFIG, ("team-a", "team-b"), "ops")
    assert read_settings((STORE,), {}).kubernetes == KubernetesSettings("auto", None, (), "")


@pytest.mark.parametrize(
    ("flag", "cure"),
    [
        ("--kubernetes-facts=maybe", "use on, off or auto"),
        ("--live-objects=yes", "use on, off or auto"),
        ("--kubernetes-namespaces=team-a,,b", "separated by commas"),
        ("--kubernetes-namespaces=Team_A", "separated by commas"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(flag: str, cure: str) -> None:
    with pytest.raises(Misconfigured, match=f"{flag.split('=')[0]}=.*{cure}"):
        read_settings((STORE, flag), {})


@pytest.mark.parametrize(
    ("mode", "kubeconfig", "is_pod", "expected"),
    [
        ("auto", None, False, False),
        ("auto", None, True, True),
        ("auto", CONFIG, False, True),
        ("on", None, False, True),
        ("off", CONFIG, True, False),
    ],
    ids=["laptop", "pod", "kubeconfig", "on", "off"],
)
def test_kubernetes_is_observed_where_there_is_one_or_where_it_was_said(
    mode: FactsMode,
    kubeconfig: Path | None,
    *,
    is_pod: bool,
    expected: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "token").write_text("token")
    monkeypatch.setattr(program, "SERVICE_ACCOUNT_FOLDER", tmp_path)
    settings = KubernetesSettings(mode, kubeconfig, live_objects=mode)
    assert is_wanted(settings.facts, settings, POD if is_pod else {}) is expected
    assert is_wanted(settings.live_objects, settings, POD if is_pod else {}) is expected


def test_only_those_share_a_lease_that_would_write_the_same() -> None:
    first, second = (parse_store_url(f"s3://bucket/{root}", {"S3_REGION": "x"}) for root in ("a", "b"))
    assert lease_name(first, ("n", "m")) == lease_name(first, ("m", "n"))
    assert len({lease_name(first, ()), lease_name(second, ()), lease_name(first, ("n",))}) == 3
    assert len(lease_name(first, ())) <= 63


async def test_a_kubeconfig_that_is_not_there_stops_the_start_by_name(tmp_path: Path) -> None:
    settings = KubernetesSettings("on", tmp_path / "missing")
    with pytest.raises(Misconfigured, match=r"missing.*there is no such file"):
        async with observing(settings, parse_store_url(f"file://{tmp_path}", {}), {}, CollectorRegistry()):
            pass


async def test_an_api_server_that_does_not_answer_does_not_hold_up_the_server(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(
        "{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: x}}],"
        " clusters: [{name: x, cluster: {server: 'http://127.0.0.1:9'}}]}"
    )
    async with (
        asyncio.timeout(30),
        observing(KubernetesSettings("on", config), parse_store_url(f"file://{tmp_path}", {}), {}, CollectorRegistry()),
    ):
        await asyncio.sleep(0.1)
