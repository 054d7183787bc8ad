"""Certificates carry what Kubernetes and TLS read from them."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml
from cryptography import x509

from bed.daemons import (
    ControlPlaneSettings,
    Ports,
    apiserver_flags,
    apiserver_sans,
    command_line,
    controller_manager_flags,
    etcd_flags,
)
from bed.keys import key_ring
from bed.pki import Authority, KeyPair, kubeconfig_text, new_key
from bed.tokens import service_account_token

PORTS = Ports(etcd=1, etcd_peer=2, apiserver=3, controller_manager=4, scheduler=5)


def certificate(pair: KeyPair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate)


def test_a_certificate_names_its_user_and_groups() -> None:
    subject = certificate(Authority.create().issue("jane", ["developers", "admins"])).subject
    assert subject.rfc4514_string() == "CN=jane,O=admins,O=developers"


def test_a_certificate_is_for_its_hosts_and_addresses() -> None:
    pair = Authority.create().issue("server", sans=["localhost", "127.0.0.1"])
    names = certificate(pair).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]


def test_a_negative_lifetime_makes_an_expired_certificate() -> None:
    expired = certificate(Authority.create().issue("jane", lifetime=timedelta(hours=-1)))
    assert expired.not_valid_before_utc < expired.not_valid_after_utc < datetime.now(UTC)


def test_an_authority_read_back_still_signs(tmp_path: Path) -> None:
    authority = Authority.create()
    again = Authority.load(authority.pair.write(tmp_path, "ca"))
    certificate(again.issue("jane")).verify_directly_issued_by(certificate(authority.pair))
    assert (tmp_path / "ca.key").stat().st_mode & 0o077 == 0


def test_a_kubeconfig_holds_everything_inside() -> None:
    pair = KeyPair(b"certificate", b"key")
    config = yaml.safe_load(kubeconfig_text("https://server", b"ca", pair, namespace="ray"))
    assert config["clusters"][0]["cluster"]["server"] == "https://server"
    assert base64.b64decode(config["users"][0]["user"]["client-key-data"]) == b"key"
    assert config["contexts"][0]["context"]["namespace"] == "ray"


def test_a_token_names_its_account_and_end() -> None:
    token = service_account_token(new_key(), "ray", "operator", "uid-1", expires_in=-60)
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert claims["sub"] == "system:serviceaccount:ray:operator"
    assert claims["exp"] < datetime.now(UTC).timestamp()


def test_the_api_server_is_known_by_all_its_names() -> None:
    sans = apiserver_sans(ControlPlaneSettings(address="10.250.0.1", service_cidr="10.96.0.0/16", sans=("proxy",)))
    assert {"10.250.0.1", "127.0.0.1", "10.96.0.1", "kubernetes.default.svc", "proxy"} <= set(sans)


def test_settings_become_flags(tmp_path: Path) -> None:
    ring = key_ring(tmp_path)
    settings = ControlPlaneSettings(address="10.250.0.1", durable=True, watch_cache=False, node_grace_seconds=7)
    assert "unsafe-no-fsync" not in etcd_flags(settings, PORTS, tmp_path)
    assert "unsafe-no-fsync" in etcd_flags(ControlPlaneSettings(), PORTS, tmp_path)
    flags = apiserver_flags(settings, PORTS, ring)
    assert (flags["watch-cache"], flags["bind-address"], flags["secure-port"]) == ("false", "10.250.0.1", "3")
    assert "endpoint-reconciler-type" not in flags
    assert apiserver_flags(ControlPlaneSettings(), PORTS, ring)["endpoint-reconciler-type"] == "none"
    manager = controller_manager_flags(settings, PORTS, ring, tmp_path / "kubeconfig")
    assert manager["node-monitor-grace-period"] == "7s"


def test_extra_flags_come_last_and_so_win() -> None:
    assert command_line({"a": "1"}, ("--a=2",)) == ["--a=1", "--a=2"]
