"""The table of all operations of the JSON API. Whatever is in it has a route and is in the OpenAPI document."""

from __future__ import annotations

from typing import Any

from raykeeper.history.keeper.clusters import CLUSTER_OPERATIONS
from raykeeper.history.keeper.jobs import JOB_OPERATIONS
from raykeeper.history.keeper.operation import Operation
from raykeeper.history.keeper.overview import OVERVIEW_OPERATIONS
from raykeeper.history.keeper.report import REPORT_OPERATIONS
from raykeeper.history.keeper.search import SEARCH_OPERATIONS
from raykeeper.history.keeper.sessions import SESSION_OPERATIONS

OPERATIONS: tuple[Operation[Any], ...] = (
    *SESSION_OPERATIONS,
    *JOB_OPERATIONS,
    *REPORT_OPERATIONS,
    *CLUSTER_OPERATIONS,
    *OVERVIEW_OPERATIONS,
    *SEARCH_OPERATIONS,
)
