"""`raykeeper operator`, for which every Ray head is at one address of this machine: pods of kwok have none.

`python -m bench.programs.operator_near_heads PORT [FLAG ...]`
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from raykeeper.cli.main import main
from raykeeper.ray import exchange

_connect = asyncio.open_connection


def near(port: int) -> None:
    """Have all connections to heads lead there. Nothing else in the operator makes connections this way."""

    async def open_connection(_host: str, _port: int, **more: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await _connect("127.0.0.1", port, **more)

    exchange.asyncio.open_connection = open_connection  # type: ignore[attr-defined]


if __name__ == "__main__":
    near(int(sys.argv[1]))
    sys.argv[1:] = ["operator", *sys.argv[2:]]
    main()
