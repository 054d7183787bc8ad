"""Service account tokens signed by hand, for what the TokenRequest API does not give: expired ones."""

from __future__ import annotations

import base64
import json
import time

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

ISSUER = "https://kubernetes.default.svc.cluster.local"


def service_account_token(
    key: ec.EllipticCurvePrivateKey, namespace: str, name: str, uid: str, *, expires_in: float
) -> str:
    """A bound token as the API server signs them; expired already when `expires_in` (seconds) is negative."""
    now = int(time.time())
    claims = {
        "iss": ISSUER,
        "aud": [ISSUER],
        "sub": f"system:serviceaccount:{namespace}:{name}",
        "iat": now - 3600,
        "nbf": now - 3600,
        "exp": int(now + expires_in),
        "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}},
    }
    signed = f"{_part({'alg': 'ES256', 'typ': 'JWT'})}.{_part(claims)}"
    r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{signed}.{_base64url(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def _part(content: dict[str, object]) -> str:
    return _base64url(json.dumps(content, separators=(",", ":")).encode())


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
