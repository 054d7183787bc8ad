"""How an actor died, out of what Ray recorded about it. Pure."""

from __future__ import annotations

from typing import Any

from raykeeper.history.masking import masked_text

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
        if isinstance(death_cause, dict) and context in death_cause:
            return masked_text(str(death_cause[context].get(message, _NO_DETAIL)))
    return _NO_DETAIL
