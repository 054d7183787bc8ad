"""How KubeRay's history server tells of failures: in plain text, with a status that says whose fault it is."""

from __future__ import annotations

from starlette.responses import Response

from raykeeper.history.answers import (
    InvalidQuery,
    LogRefused,
    LogUnknown,
    NotThere,
    Unanswerable,
    text_response,
    trouble_response,
)
from raykeeper.history.failures import Telling, failure_response

_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (LogRefused, 400),
    (LogUnknown, 404),
    (NotThere, 404),
    (Unanswerable, 400),
    (InvalidQuery, 400),
)
"""For what Ray answers with 500 or with its envelope; the first that fits."""


def kuberay_failure(error: Exception) -> Response | None:
    """The answer to an error that is not our bug; None for one that is."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), None)
    return failure_response(error) if status is None else text_response(str(error), status)


AS_KUBERAY_TELLS = Telling(kuberay_failure, trouble_response)
