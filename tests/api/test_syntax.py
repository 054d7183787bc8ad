"""Names and labels are judged as the API server judges them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from raykeeper.api.syntax import (
    is_dns_1035_label,
    is_dns_1123_label,
    is_dns_1123_subdomain,
    is_label_value,
    is_qualified_name,
)

ACCEPTED = [
    (is_dns_1035_label, "a"),
    (is_dns_1035_label, "a-1"),
    (is_dns_1035_label, "a" * 63),
    (is_dns_1123_label, "1-a"),
    (is_dns_1123_subdomain, "a.b-c.1"),
    (is_dns_1123_subdomain, ".".join(["a" * 63] * 3)),
    (is_qualified_name, "accelerator"),
    (is_qualified_name, "ray.io/accelerator-type"),
    (is_qualified_name, "A_b.c-D"),
    (is_label_value, ""),
    (is_label_value, "A100_80.gb"),
]

REFUSED = [
    (is_dns_1035_label, ""),
    (is_dns_1035_label, "1a"),
    (is_dns_1035_label, "a-"),
    (is_dns_1035_label, "a.b"),
    (is_dns_1035_label, "A"),
    (is_dns_1035_label, "a\n"),
    (is_dns_1035_label, "a" * 64),
    (is_dns_1123_label, "-a"),
    (is_dns_1123_subdomain, "a..b"),
    (is_dns_1123_subdomain, "a" * 254),
    (is_qualified_name, ""),
    (is_qualified_name, "/name"),
    (is_qualified_name, "ray.io/"),
    (is_qualified_name, "a/b/c"),
    (is_qualified_name, "Ray.io/name"),
    (is_qualified_name, "_a"),
    (is_qualified_name, "a" * 64),
    (is_label_value, "-a"),
    (is_label_value, "a b"),
    (is_label_value, "a" * 64),
]


@pytest.mark.parametrize(("accepts", "text"), ACCEPTED)
def test_what_kubernetes_accepts_is_accepted(accepts: Callable[[str], bool], text: str) -> None:
    assert accepts(text)


@pytest.mark.parametrize(("accepts", "text"), REFUSED)
def test_what_kubernetes_refuses_is_refused(accepts: Callable[[str], bool], text: str) -> None:
    assert not accepts(text)
