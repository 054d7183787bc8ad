"""What a token may lack."""

from __future__ import annotations

from raykeeper.errors import RaykeeperError


class TokenRefused(RaykeeperError):
    """The token proves nothing; the text says why and has nothing of the token in it."""
