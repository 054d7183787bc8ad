"""Cookies that only we can read and make: encrypted and authenticated with keys that all replicas share."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec
from joserfc import jwe
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, OctKey

from raykeeper.history.bounded import Bounded

LONGEST_COOKIE: Final = 3800
"""Browsers keep 4096 bytes of a cookie, with its name and attributes."""
_ALGORITHMS: Final = ["dir", "A256GCM"]
_REMEMBERED: Final = 1_000
"""Opened cookies, some kilobytes each: a page and what it loads bring the same one."""

T = TypeVar("T")


class Sealer:
    """Seals values into text and opens them. The first key seals, all of them open."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = KeySet([OctKey.import_key(_key_bytes(key), {"kid": _key_id(key)}) for key in keys])
        self._first = self._keys.keys[0]
        self._opened: Bounded[tuple[str, str], object] = Bounded(_REMEMBERED)

    def seal(self, purpose: str, value: object) -> str:
        """`purpose` keeps a cookie of one kind from being used as one of another."""
        header = {"alg": "dir", "enc": "A256GCM", "kid": self._first.kid, "typ": purpose}
        return jwe.encrypt_compact(header, msgspec.json.encode(value), self._first, algorithms=_ALGORITHMS)

    def open(self, purpose: str, text: str, kind: type[T]) -> T | None:
        """The value in it; None for what we did not seal, or sealed with a key that is withdrawn."""
        if len(text) > LONGEST_COOKIE or not text.isascii():
            return None
        known = self._opened.get((purpose, text))
        if isinstance(known, kind):
            return known
        try:
            value = self._decrypted(purpose, text, kind)
        except (JoseError, ValueError, KeyError, TypeError, msgspec.DecodeError):
            return None
        if value is not None:
            self._opened.put((purpose, text), value)
        return value

    def _decrypted(self, purpose: str, text: str, kind: type[T]) -> T | None:
        found = jwe.decrypt_compact(text, self._keys, algorithms=_ALGORITHMS)
        if found.protected.get("typ") != purpose:
            return None
        return msgspec.json.decode(found.plaintext or b"", type=kind)


def _key_bytes(key: str) -> bytes:
    return hashlib.sha256(b"raykeeper history cookies" + key.encode()).digest()


def _key_id(key: str) -> str:
    """Names a key without telling anything of it."""
    return hashlib.sha256(b"raykeeper history cookie key id" + key.encode()).hexdigest()[:12]
