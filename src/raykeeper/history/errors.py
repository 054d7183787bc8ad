"""Errors of questions about the past; `http/errors.py` turns each into an answer."""

from __future__ import annotations

from raykeeper.errors import RaykeeperError


class InvalidQuery(ValueError):
    """The request asks for something that does not exist; Ray's state API answers 400 with this text."""


class Unanswerable(Exception):
    """Ray's own handler fails on this request, so that a client sees 500 and no reason."""


class NotThere(Unanswerable):
    """Ray fails on it because what the request is about is not there."""


class LogUnknown(Exception):
    """There is no such log; the text is Ray's, which it answers with 500."""


class LogRefused(LogUnknown):
    """No log can be meant by what was asked for: an id that nothing has, or a path that leads out of `logs/`."""


class NotFound(RaykeeperError):
    """What the path names does not exist."""
