"""The command `raykeeper import` behind its flags."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from raykeeper.clock import SystemClock
from raykeeper.errors import Misconfigured
from raykeeper.history.commands.import_sessions.from_bucket import BucketImport
from raykeeper.history.commands.import_sessions.from_disk import DiskImport
from raykeeper.history.commands.import_sessions.sources import DiskNames, bucket_source, disk_source
from raykeeper.history.commands.import_sessions.writing import Say, Tally
from raykeeper.history.urls import parse_session_name
from raykeeper.layout.keys import SessionId
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url


@dataclass(frozen=True)
class ImportOrder:
    """What the user asked for."""

    source: str
    store_url: str
    session: str = ""
    """`<namespace>/<cluster>/<session>` of one session in a bucket; all where empty."""
    disk: DiskNames = field(default_factory=DiskNames)
    is_dry_run: bool = False


def run_import(order: ImportOrder, say: Say, environment: Mapping[str, str] = os.environ) -> int:
    """Import, and say what came of it; the exit code is 1 if something could not be read."""
    tally = asyncio.run(_import(order, say, environment))
    for line in tally.lines(is_dry_run=order.is_dry_run):
        say(line)
    return 1 if tally.unreadable else 0


async def _import(order: ImportOrder, say: Say, environment: Mapping[str, str]) -> Tally:
    only = parse_session_name(order.session) if order.session else None
    target = open_store(parse_store_url(order.store_url, environment))
    bucket = bucket_source(order.source, environment)
    if bucket is None:
        sessions = [found for found in disk_source(order.source, order.disk) if only in (None, found.id)]
        _check_found(only, bool(sessions))
        disk = DiskImport(target, say, node_id=order.disk.node_id, is_dry_run=order.is_dry_run)
        return await disk.run(sessions)
    tally = await BucketImport(open_store(bucket), target, SystemClock(), say, is_dry_run=order.is_dry_run).run(only)
    _check_found(only, bool(tally.sessions or tally.running))
    return tally


def _check_found(only: SessionId | None, is_found: bool) -> None:
    if only is not None and not is_found:
        raise Misconfigured("--session", str(only), "there is no such session in what is to be imported")
