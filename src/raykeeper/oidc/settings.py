"""How ID tokens are read. Cheap to import: what checks them is not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class OidcSettings:
    """How tokens of an identity provider are read; names and defaults are those of kube-apiserver's flags."""

    issuer_url: str = ""
    """URL of the provider (`--oidc-issuer-url`)."""
    client_id: str = ""
    """Audience that tokens must be made for (`--oidc-client-id`)."""
    username_claim: str = "sub"
    """Claim that is the user's name (`--oidc-username-claim`)."""
    username_prefix: str = ""
    """Put before the name (`--oidc-username-prefix`); `-` for nothing, empty for the issuer and `#`."""
    groups_claim: str = ""
    """Claim that lists the user's groups (`--oidc-groups-claim`); empty for none."""
    groups_prefix: str = ""
    """Put before each group (`--oidc-groups-prefix`)."""
    required_claims: tuple[tuple[str, str], ...] = ()
    """Claims that a token must have, with their values (`--oidc-required-claim`)."""
    ca_file: Path | None = None
    """Certificate authority of the provider (`--oidc-ca-file`)."""
