"""Numbers in words. Pure."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """`1 node`, `2,000 nodes`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
