"""Requests to an S3 server signed by hand (AWS Signature Version 4), for making buckets and looking into them."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

from bed.rest import Rest


@dataclass(frozen=True)
class S3:
    """One S3 server and the keys of one user."""

    endpoint: str
    access_key: str
    secret_key: str
    region: str = "us-east-1"

    def put(self, path: str, body: bytes = b"") -> None:
        """Make the bucket `/BUCKET`, or write the object `/BUCKET/KEY`."""
        self._request("PUT", path, body)

    def get(self, path: str) -> bytes:
        """The object `/BUCKET/KEY`."""
        return self._request("GET", path)

    def _request(self, method: str, path: str, body: bytes = b"") -> bytes:
        path = quote(path)
        headers = self.signed_headers(method, path, body, datetime.now(UTC))
        return Rest(self.endpoint).raw(method, path, body, headers)

    def signed_headers(self, method: str, path: str, body: bytes, now: datetime) -> dict[str, str]:
        """The headers that prove a request (without a query) to be of this user. `path` is quoted already."""
        digest = hashlib.sha256(body).hexdigest()
        time = now.strftime("%Y%m%dT%H%M%SZ")
        signed = {"host": urlsplit(self.endpoint).netloc, "x-amz-content-sha256": digest, "x-amz-date": time}
        names = ";".join(signed)
        lines = "".join(f"{name}:{value}\n" for name, value in signed.items())
        canonical = f"{method}\n{path}\n\n{lines}\n{names}\n{digest}"
        scope = f"{time[:8]}/{self.region}/s3/aws4_request"
        to_sign = f"AWS4-HMAC-SHA256\n{time}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        signature = _keyed(self._signing_key(scope), to_sign).hex()
        authorization = (
            f"AWS4-HMAC-SHA256 Credential={self.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
        )
        return signed | {"Authorization": authorization}

    def _signing_key(self, scope: str) -> bytes:
        key = f"AWS4{self.secret_key}".encode()
        for part in scope.split("/"):
            key = _keyed(key, part)
        return key


def _keyed(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
