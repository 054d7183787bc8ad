"""How an actor died, out of what Ray recorded about it. Pure."""

from __future__ import annotations

from typing import Any

from raykeeper.masking import masked_text

_NO_DETAIL = "-"
_DEATH_MESSAGES = {
    "actorDiedErrorContext": "errorMessage",
    "runtimeEnvFailedContext": "errorMessage",
    "actorUnschedulableContext": "errorMessage",
    "creationTaskFailureContext": "formattedExceptionString",
}


def exit_detail(death_cause: Any) -> str:
    """The message of whatever ended the actor."""
    for context, message in _DEATH_MESSAGES.items():
        told = death_cause.get(context) if isinstance(death_cause, dict) else None
        if isinstance(told, dict):
            return masked_text(str(told.get(message, _NO_DETAIL)))
    return _NO_DETAIL
