"""`/timezone`: of the head, so that the frontend shows the times people saw then."""

from __future__ import annotations

import re
from datetime import timedelta

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.answers import json_response
from raykeeper.history.asked import Asked

POLLED = "/timezone"

_OFFSET = re.compile(r"([+-])([01]\d|2[0-3]):([0-5]\d)")


class Timezone(msgspec.Struct, frozen=True):
    offset: str = "+00:00"
    value: str = "Etc/UTC"


async def get_timezone(_: Request, asked: Asked) -> Response:
    return json_response(head_timezone(asked))


def head_timezone(asked: Asked) -> Timezone:
    """As the head said; UTC where it never did."""
    return asked.polled_body(POLLED, Timezone) or Timezone()


def utc_offset(asked: Asked) -> timedelta:
    match = _OFFSET.fullmatch(head_timezone(asked).offset)
    if match is None:
        return timedelta()
    distance = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return -distance if match[1] == "-" else distance
