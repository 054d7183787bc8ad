"""When a certificate ends, and contexts made of PEM text."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta

import pytest

from bed.pki import Authority
from raykeeper.kube.connect.tls import TlsMaterial, certificate_end, tls_context


def certificate_text(lifetime: timedelta) -> tuple[str, str]:
    pair = Authority.create().issue("someone", ["some-group"], lifetime=lifetime)
    return pair.certificate.decode(), pair.key.decode()


@pytest.mark.parametrize("days", [-1, 30, 365 * 40])
def test_the_end_of_a_certificate_is_read_in_this_and_the_next_half_century(days: int) -> None:
    certificate, _ = certificate_text(timedelta(days=days))
    end = certificate_end(f"some words before\n{certificate}")
    assert end is not None
    assert abs(end - (datetime.now(UTC) + timedelta(days=days))) < timedelta(minutes=2)


@pytest.mark.parametrize("text", ["", "no certificate", "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----"])
def test_the_end_of_what_is_no_certificate_is_not_known(text: str) -> None:
    assert certificate_end(text) is None


def test_a_context_takes_certificate_and_key_from_text() -> None:
    certificate, key = certificate_text(timedelta(days=1))
    context = tls_context(TlsMaterial(ca=certificate, certificate=certificate, key=key))
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert tls_context(TlsMaterial(verify=False)).verify_mode == ssl.CERT_NONE


def test_a_key_of_another_certificate_is_refused() -> None:
    certificate, _ = certificate_text(timedelta(days=1))
    _, other_key = certificate_text(timedelta(days=1))
    with pytest.raises(ssl.SSLError):
        tls_context(TlsMaterial(certificate=certificate, key=other_key))
