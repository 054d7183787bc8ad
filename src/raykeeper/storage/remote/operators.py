"""opendal's operators for one store. opendal is imported when a store is opened, since it costs 10 MB."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from raykeeper.errors import Misconfigured
from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.patience import Patience

if TYPE_CHECKING:
    from opendal import AsyncOperator

MIB = 1024 * 1024
# S3 takes 10,000 parts: objects of up to 80 GB. One goes at a time: that takes 24 MB beside what is there, two take 55.
PART_BYTES = 8 * MIB
# Looking up the symbols of one backtrace takes 42 MB for good, where somebody set RUST_BACKTRACE.
_NO_BACKTRACES = ("RUST_LIB_BACKTRACE", "0")


@dataclass(frozen=True)
class Operators:
    """One store, with three kinds of patience."""

    reading: AsyncOperator
    """Gives up when an answer does not begin, or falls silent."""
    writing: AsyncOperator
    """Never gives up: how long a body may take depends on its size, which the caller knows."""
    uploading: AsyncOperator
    """Asks again for single parts of a large file."""
    errors: tuple[type[Exception], ...]
    """Everything that opendal raises; its classes have no base in common."""
    file_errors: tuple[type[Exception], ...]
    """The same for its files, which raise `OSError` too."""


def make_operators(settings: StoreSettings, patience: Patience) -> Operators:
    """Operators of a store that is reached over the network. Nothing is sent yet."""
    os.environ.setdefault(*_NO_BACKTRACES)
    import opendal
    from opendal import exceptions
    from opendal.layers import RetryLayer, TimeoutLayer

    errors = tuple(found for found in vars(exceptions).values() if isinstance(found, type))
    try:
        plain = opendal.AsyncOperator(settings.backend.opendal_scheme, **opendal_options(settings))
    except exceptions.ConfigInvalid as exc:
        cause = str(exc).partition("\n")[0]
        raise Misconfigured("storage", settings.describe(), f"opendal cannot use it ({cause})") from None
    silence = patience.first_byte_seconds
    part = patience.transfer_seconds(PART_BYTES)
    retry = RetryLayer(
        max_times=patience.attempts - 1, jitter=True, min_delay=0.1, max_delay=patience.longest_pause_seconds
    )
    return Operators(
        reading=plain.layer(TimeoutLayer(timeout=silence, io_timeout=silence)),
        writing=plain,
        uploading=plain.layer(TimeoutLayer(timeout=silence, io_timeout=part)).layer(retry),
        errors=errors,
        file_errors=(*errors, OSError),
    )


def opendal_options(settings: StoreSettings) -> dict[str, str]:
    """Keyword arguments of an operator for these settings."""
    options = {settings.backend.bucket_option: settings.bucket, "root": f"/{settings.root}"}
    if settings.endpoint:
        options["endpoint"] = settings.endpoint
    return options | dict(settings.options) | dict(settings.secrets)
