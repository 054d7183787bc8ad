"""The request that makes an Azure container, signed with the account's key. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from datetime import datetime
from email.utils import format_datetime
from urllib.parse import urlsplit

from raykeeper.errors import Misconfigured
from raykeeper.storage.backends.backend import HttpRequest, StoreSettings

_API_VERSION = "2021-12-02"
# The signature covers eleven standard headers by position; all of them are empty here.
_STANDARD_HEADERS = "\n" * 11


def azure_container_request(settings: StoreSettings, now: datetime) -> HttpRequest:
    """The request that makes the container of these settings, in the name of their account."""
    account = settings.options["account_name"]
    url = f"{settings.endpoint}/{settings.bucket}"
    ours = {"x-ms-date": format_datetime(now, usegmt=True), "x-ms-version": _API_VERSION}
    lines = "".join(f"{name}:{value}\n" for name, value in ours.items())
    to_sign = f"PUT\n{_STANDARD_HEADERS}{lines}/{account}{urlsplit(url).path}\nrestype:container"
    signature = hmac.new(_account_key(settings), to_sign.encode(), hashlib.sha256).digest()
    authorization = f"SharedKey {account}:{base64.b64encode(signature).decode()}"
    headers = ours | {"Authorization": authorization, "Content-Length": "0"}
    return HttpRequest("PUT", f"{url}?restype=container", headers)


def _account_key(settings: StoreSettings) -> bytes:
    try:
        return base64.b64decode(settings.secrets["account_key"], validate=True)
    except binascii.Error:
        raise Misconfigured("AccountKey", "…", "it must be base64, as Azure's portal shows it") from None
