"""Keys, certificates and kubeconfigs of one cluster, made in milliseconds (EC P-256 throughout)."""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

A_YEAR = timedelta(days=365)
CLOCK_LEEWAY = timedelta(minutes=5)  # a certificate is valid from a little before now, whatever the clocks say


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path, name: str) -> KeyFiles:
        """Keep both as `NAME.crt` and `NAME.key`; the key is readable by its owner only."""
        files = KeyFiles(folder / f"{name}.crt", folder / f"{name}.key")
        folder.mkdir(parents=True, exist_ok=True)
        files.key.touch(mode=0o600)
        files.key.write_bytes(self.key)
        files.certificate.write_bytes(self.certificate)
        return files


@dataclass(frozen=True)
class KeyFiles:
    """Where a written pair is, for daemons that take paths."""

    certificate: Path
    key: Path

    def read(self) -> KeyPair:
        """The pair that was written."""
        return KeyPair(self.certificate.read_bytes(), self.key.read_bytes())


class Authority:
    """A certificate authority; what it signs is trusted by whoever has its certificate."""

    def __init__(self, pair: KeyPair) -> None:
        self.pair = pair
        self._certificate = x509.load_pem_x509_certificate(pair.certificate)
        self._key = private_key(pair.key)

    @classmethod
    def create(cls, name: str = "bed-ca") -> Authority:
        """A fresh one that signed itself."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = _key_usage(signs_certificates=True)
        builder = _unsigned(subject, subject, key.public_key(), lifetime=10 * A_YEAR)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        certificate = builder.add_extension(usage, critical=True).sign(key, hashes.SHA256())
        return cls(KeyPair(_pem(certificate), to_pem(key)))

    @classmethod
    def load(cls, files: KeyFiles) -> Authority:
        """The one written before."""
        return cls(files.read())

    def issue(
        self, name: str, groups: Sequence[str] = (), sans: Sequence[str] = (), lifetime: timedelta = A_YEAR
    ) -> KeyPair:
        """A pair for user or server `name`; a negative `lifetime` makes one that has expired already.

        It serves both ends of a connection: Kubernetes reads the user from CN and the groups from O, and a server
        is known by `sans` (host names and IP addresses).
        """
        key = ec.generate_private_key(ec.SECP256R1())
        organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, name)])
        both_ends = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH])
        builder = _unsigned(subject, self._certificate.subject, key.public_key(), lifetime)
        builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(both_ends, critical=False)
        # Python's strict TLS verification (3.13 on) refuses a chain without the two key identifiers.
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer, critical=False)
        if sans:
            builder = builder.add_extension(x509.SubjectAlternativeName([*map(_san, sans)]), critical=False)
        return KeyPair(_pem(builder.sign(self._key, hashes.SHA256())), to_pem(key))


def new_key() -> ec.EllipticCurvePrivateKey:
    """A private key without a certificate, as service account tokens are signed with."""
    return ec.generate_private_key(ec.SECP256R1())


def private_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """Read back a key of ours."""
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"an EC key is expected, not {type(key).__name__}")
    return key


def to_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The private key as PEM without a password."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def to_public_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The public half as PEM."""
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def kubeconfig_text(
    server: str, authority: bytes, pair: KeyPair | None = None, token: str | None = None, namespace: str = "default"
) -> str:
    """A kubeconfig with everything inside it, for one cluster and one user known by `pair` or `token`."""
    user: dict[str, str] = {}
    if pair is not None:
        user |= {"client-certificate-data": _base64(pair.certificate), "client-key-data": _base64(pair.key)}
    if token is not None:
        user["token"] = token
    cluster = {"server": server, "certificate-authority-data": _base64(authority)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bed",
        "clusters": [{"name": "bed", "cluster": cluster}],
        "users": [{"name": "bed", "user": user}],
        "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": "bed", "namespace": namespace}}],
    }
    return yaml.safe_dump(config, sort_keys=False)


def _unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, lifetime: timedelta
) -> x509.CertificateBuilder:
    end = datetime.now(UTC) + lifetime
    start = min(datetime.now(UTC), end) - CLOCK_LEEWAY
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(start).not_valid_after(end)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        key_encipherment=False,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _san(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
