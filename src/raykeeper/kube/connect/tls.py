"""TLS contexts from PEM text, and reading when a certificate ends."""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

_UTC_TIME = 0x17  # ASN.1 tag; two-digit years
_VERSION = 0xA0


@dataclass(frozen=True)
class TlsMaterial:
    """What a TLS context is made of; compared to see whether a rotation changed anything."""

    ca: str | None = None
    """PEM; None trusts the machine's own authorities."""
    certificate: str | None = None
    key: str | None = None
    verify: bool = True


def tls_context(material: TlsMaterial) -> ssl.SSLContext:
    """A client context. Raises `ssl.SSLError` or `ValueError` where the PEM text is unusable."""
    context = ssl.create_default_context(cadata=material.ca) if material.ca else ssl.create_default_context()
    # Python 3.13 turned this on: it refuses certificates without key identifiers, which many clusters' own CAs made.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not material.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if material.certificate:
        _load_certificate(context, material.certificate, material.key or material.certificate)
    return context


def _load_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    # The ssl module takes certificates from files only; a private folder keeps the key from other users.
    with tempfile.TemporaryDirectory(prefix="raykeeper-tls-") as folder:
        pair = Path(folder, "pair.pem")
        pair.touch(mode=0o600)
        pair.write_text(f"{certificate}\n{key}\n")
        context.load_cert_chain(pair, password=_refuse_password)


def _refuse_password() -> str:
    """Instead of OpenSSL's own prompt on the terminal, which would hang a program without one."""
    raise ValueError("the private key is encrypted")


def certificate_end(pem: str) -> datetime | None:
    """When the first certificate in the text expires; None where it cannot be told.

    The standard library reads this of certificates in a connection, but not of our own.
    """
    try:
        der = ssl.PEM_cert_to_DER_cert(pem[pem.index(_BEGIN) : pem.index(_END) + len(_END)])
        return _validity_end(der)
    except (ValueError, IndexError):
        return None


_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def _validity_end(der: bytes) -> datetime:
    """Follow Certificate > TBSCertificate, past version, serial, algorithm and issuer, to Validity's second time."""
    at = _inside(der, _inside(der, 0))
    if der[at] == _VERSION:
        at = _after(der, at)
    for _ in ("serial", "algorithm", "issuer"):
        at = _after(der, at)
    at = _after(der, _inside(der, at))
    text = der[_inside(der, at) : _after(der, at)].decode("ascii")
    pattern = "%y%m%d%H%M%SZ" if der[at] == _UTC_TIME else "%Y%m%d%H%M%SZ"
    return datetime.strptime(text, pattern).replace(tzinfo=UTC)


def _inside(der: bytes, at: int) -> int:
    """Where the content of the element at `at` starts."""
    length = der[at + 1]
    return at + 2 + (length & 0x7F if length & 0x80 else 0)


def _after(der: bytes, at: int) -> int:
    """Where the element at `at` ends."""
    start = _inside(der, at)
    length = int.from_bytes(der[at + 2 : start]) if der[at + 1] & 0x80 else der[at + 1]
    return start + length
