"""The key files of one control plane: which there are, where they lie, and making them."""

from __future__ import annotations

import ssl
from dataclasses import fields
from pathlib import Path

from bed.daemons import FRONT_PROXY_USER, LOOPBACK, ControlPlaneSettings, KeyRing, apiserver_sans
from bed.pki import Authority, KeyFiles, new_key, to_pem, to_public_pem

ADMINISTRATORS = "system:masters"
CONTROLLER_MANAGER_USER = "system:kube-controller-manager"
SCHEDULER_USER = "system:kube-scheduler"


def key_ring(folder: Path) -> KeyRing:
    """Where the key files of a control plane lie in `folder`."""
    names = [field.name for field in fields(KeyRing)]
    return KeyRing(**{name: KeyFiles(folder / f"{name}.crt", folder / f"{name}.key") for name in names})


def make_keys(folder: Path, settings: ControlPlaneSettings) -> KeyRing:
    """Make every key file of a new control plane."""
    folder.mkdir(parents=True, exist_ok=True)
    authority = Authority.create()
    loopback = ["localhost", LOOPBACK]
    pairs = {
        "authority": authority.pair,
        "apiserver": authority.issue("kube-apiserver", sans=apiserver_sans(settings)),
        "kubelet_client": authority.issue("kube-apiserver-kubelet-client", [ADMINISTRATORS]),
        "front_proxy": authority.issue(FRONT_PROXY_USER),
        "admin": authority.issue("admin", [ADMINISTRATORS]),
        "controller_manager": authority.issue(CONTROLLER_MANAGER_USER, sans=loopback),
        "scheduler": authority.issue(SCHEDULER_USER, sans=loopback),
    }
    for name, pair in pairs.items():
        pair.write(folder, name)
    ring = key_ring(folder)
    signing_key = new_key()
    ring.service_accounts.key.touch(mode=0o600)
    ring.service_accounts.key.write_bytes(to_pem(signing_key))
    ring.service_accounts.certificate.write_bytes(to_public_pem(signing_key))
    return ring


def client_tls(ring: KeyRing, pair: KeyFiles | None = None) -> ssl.SSLContext:
    """TLS that trusts the cluster's authority and shows `pair`, or no certificate."""
    context = ssl.create_default_context(cafile=str(ring.authority.certificate))
    if pair is not None:
        context.load_cert_chain(pair.certificate, pair.key)
    return context
