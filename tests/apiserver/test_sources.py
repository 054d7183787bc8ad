"""Flags and variables of the API server; above all: nobody gets in by accident."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from raykeeper.apiserver.settings import AccessToken, ApiServerSettings
from raykeeper.apiserver.sources import read_settings
from raykeeper.errors import Misconfigured
from raykeeper.settings.addresses import Address

TOKEN = "a-token-that-is-long-enough"


def read(*arguments: str, as_kuberay: bool = False, **environment: str) -> ApiServerSettings:
    return read_settings(arguments, environment, as_kuberay=as_kuberay)


def test_by_default_only_this_machine_reaches_it() -> None:
    settings = read()
    assert settings.http == Address("127.0.0.1", 8888)
    assert settings.grpc == Address("127.0.0.1", 8887)
    assert settings.access.mode == "none"
    assert settings.access.answers_localhost_only


def test_kuberays_command_line_means_the_same() -> None:
    settings = read(
        *("-httpPortFlag=:9888", "-rpcPortFlag", ":9887", "-collectMetricsFlag=false", "-logFilePath=/tmp/x.log"),
        *("-localSwaggerPath=/x", "-grpc_timeout=30s", "-enable-api-server-v2=true", "-cors-allow-origin=*"),
        as_kuberay=True,
    )
    assert settings.http == Address(None, 9888)
    assert settings.grpc == Address(None, 9887)
    assert settings.call_seconds == 30.0
    assert settings.cors_origin == "*"
    assert settings.logs.file_path == Path("/tmp/x.log")
    assert set(settings.ignored) == {"--collectMetricsFlag", "--localSwaggerPath"}
    assert settings.v2
    assert not read("--enable-api-server-v2=false").v2


def test_an_address_for_probes_and_metrics_alone_needs_no_decision() -> None:
    assert read().metrics is None
    assert read("--metrics-addr=:8889").metrics == Address(None, 8889)
    assert read("--metrics-addr=:8889").access.answers_localhost_only
    assert read(RAYKEEPER_APISERVER_METRICS="127.0.0.1:1").metrics == Address("127.0.0.1", 1)
    with pytest.raises(Misconfigured, match="--metrics-addr"):
        read("--metrics-addr=8889")


def test_under_kuberays_name_it_listens_everywhere_and_knows_that_nobody_decided() -> None:
    settings = read(as_kuberay=True)
    assert settings.http == Address(None, 8888)
    assert settings.access.is_undecided
    assert not read("--auth=none", as_kuberay=True).access.is_undecided
    assert not read("--auth=passthrough", as_kuberay=True).access.is_undecided


@pytest.mark.parametrize("flag", ["--httpPortFlag", "--rpcPortFlag"])
@pytest.mark.parametrize("address", [":8888", "0.0.0.0:8888", "[::]:8888", "10.0.0.1:8888", "example.com:1"])
def test_any_other_address_needs_a_decision(flag: str, address: str) -> None:
    with pytest.raises(Misconfigured, match="say who may by --auth"):
        read(f"{flag}={address}")
    assert read(f"{flag}={address}", "--auth=none").access.mode == "none"
    assert not read(f"{flag}={address}", "--auth=none").access.answers_localhost_only
    assert read(f"{flag}={address}", RAYKEEPER_AUTH="kubernetes").access.mode == "kubernetes"


@pytest.mark.parametrize("address", ["127.0.0.1:1", "[::1]:1", "localhost:1", "127.1.2.3:1"])
def test_loopback_in_any_spelling_needs_none(address: str) -> None:
    assert read(f"--httpPortFlag={address}").access.answers_localhost_only


def test_tokens_come_from_a_variable_or_a_file(tmp_path: Path) -> None:
    assert read("--auth=token", RAYKEEPER_AUTH_TOKEN=TOKEN).access.tokens == (AccessToken(TOKEN),)
    file = tmp_path / "tokens"
    file.write_text(f"{TOKEN}\n\nsecond-token team-a, team-b\n")
    expected = (AccessToken(TOKEN), AccessToken("second-token", frozenset({"team-a", "team-b"})))
    assert read("--auth=token", f"--auth-token-file={file}").access.tokens == expected


def test_tokens_are_not_printed() -> None:
    assert TOKEN not in repr(read("--auth=token", RAYKEEPER_AUTH_TOKEN=TOKEN))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--auth=token"], "RAYKEEPER_AUTH_TOKEN"),
        (["--auth=token", "--auth-token-file=/nowhere/at/all"], "readable text file"),
        (["--auth=maybe"], "none, token, passthrough, kubernetes, oidc"),
        (["--auth=oidc"], "--oidc-issuer-url"),
        (["--auth=oidc", "--oidc-issuer-url=https://x"], "--oidc-client-id"),
        (["--impersonate"], "needs --auth=kubernetes"),
        (["--impersonate", "--auth=passthrough"], "needs --auth=kubernetes"),
        (["--httpPortFlag=0"], "use host:port"),
        (["--httpPortFlag=nonsense"], "host:port"),
        (["--grpc_timeout=soon"], "duration"),
        (["--qps=many"], "number"),
        (["--nonsense"], "no such flag"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(arguments: list[str], problem: str) -> None:
    with pytest.raises(Misconfigured, match=problem):
        read(*arguments)


def test_an_empty_token_file_opens_nothing(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("\n  \n")
    with pytest.raises(Misconfigured, match="no token"):
        read("--auth=token", f"--auth-token-file={file}")
    file.write_text("t\u00f6ken\n")
    with pytest.raises(Misconfigured, match="printable ASCII"):
        read("--auth=token", f"--auth-token-file={file}")


@pytest.mark.parametrize(
    "line",
    ["s3cret ,", "s3cret team-a,", "s3cret , team-a", "# team-a", "#", "s3cret team a", "s3cret *", "s3cret a/b"],
)
def test_a_line_that_could_mean_more_than_it_says_is_refused(line: str, tmp_path: Path) -> None:
    """A token with an empty list of namespaces is good for all of them."""
    file = tmp_path / "tokens"
    file.write_text(f"{TOKEN}\n{line}\n")
    with pytest.raises(Misconfigured, match="--auth-token-file") as refusal:
        read("--auth=token", f"--auth-token-file={file}")
    assert "s3cret" not in str(refusal.value)


def test_oidc_has_the_flags_of_kube_apiserver() -> None:
    flags: dict[str, Any] = {
        "issuer-url": "https://login.example.com",
        "client-id": "ray",
        "username-claim": "email",
        "username-prefix": "oidc:",
        "groups-claim": "groups",
        "groups-prefix": "oidc:",
        "required-claim": "tenant=a,aud2=b",
        "ca-file": "/ca.pem",
    }
    oidc = read("--auth=oidc", "--impersonate", *(f"--oidc-{name}={text}" for name, text in flags.items())).access.oidc
    assert oidc.username_claim == "email"
    assert oidc.required_claims == (("tenant", "a"), ("aud2", "b"))
    assert oidc.ca_file == Path("/ca.pem")
    with pytest.raises(Misconfigured, match="name=value"):
        read("--auth=oidc", "--oidc-issuer-url=https://x", "--oidc-client-id=y", "--oidc-required-claim=tenant")
