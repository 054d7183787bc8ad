"""What is known about a cluster as a whole, beside its nodes and jobs."""

from __future__ import annotations

from typing import Any

from raykeeper.history.query.context import SessionContext

METADATA = "/api/v0/cluster_metadata"
VERSION = "/api/version"
JOB_API_VERSION = "4"  # of the job API in every Ray since 2.7


async def version(context: SessionContext) -> dict[str, Any]:
    """As the head said; where it never did, what the collector wrote down at the start."""
    record = context.session.record
    known = {
        "version": JOB_API_VERSION,
        "ray_version": record.ray_version if record else "",
        "ray_commit": record.ray_commit if record else "",
    }
    polled = await context.polled_body(VERSION, dict[str, Any]) or {}
    return {**known, **polled, "session_name": context.session.id.session}
