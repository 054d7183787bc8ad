"""The request that makes an S3 bucket, signed with AWS Signature Version 4. Pure."""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime
from urllib.parse import quote, urlsplit

from raykeeper.storage.backends.backend import HttpRequest, StoreSettings

_FIRST_REGION = "us-east-1"  # the only one whose buckets must not name it


def s3_bucket_request(settings: StoreSettings, now: datetime) -> HttpRequest:
    """The request that makes the bucket of these settings, in the name of their keys."""
    region = settings.options["region"]
    url = f"{settings.endpoint or f'https://s3.{region}.amazonaws.com'}/{quote(settings.bucket)}"
    body = b"" if region == _FIRST_REGION else _configuration(region)
    signed = {
        "host": urlsplit(url).netloc,
        "x-amz-content-sha256": hashlib.sha256(body).hexdigest(),
        "x-amz-date": now.strftime("%Y%m%dT%H%M%SZ"),
    }
    if token := settings.secrets.get("session_token"):
        signed["x-amz-security-token"] = token
    return HttpRequest("PUT", url, signed | {"Authorization": _authorization(settings, url, signed, region)}, body)


def _configuration(region: str) -> bytes:
    namespace = "http://s3.amazonaws.com/doc/2006-03-01/"
    constraint = f"<LocationConstraint>{region}</LocationConstraint>"
    return f'<CreateBucketConfiguration xmlns="{namespace}">{constraint}</CreateBucketConfiguration>'.encode()


def _authorization(settings: StoreSettings, url: str, signed: dict[str, str], region: str) -> str:
    names = ";".join(signed)  # inserted in the order of the alphabet, as the signature wants them
    lines = "".join(f"{name}:{value}\n" for name, value in signed.items())
    canonical = f"PUT\n{urlsplit(url).path}\n\n{lines}\n{names}\n{signed['x-amz-content-sha256']}"
    time = signed["x-amz-date"]
    scope = f"{time[:8]}/{region}/s3/aws4_request"
    to_sign = f"AWS4-HMAC-SHA256\n{time}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{settings.secrets['secret_access_key']}".encode()
    for part in scope.split("/"):
        key = _keyed(key, part)
    credential = f"{settings.secrets['access_key_id']}/{scope}"
    signature = _keyed(key, to_sign).hex()
    return f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}"


def _keyed(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
