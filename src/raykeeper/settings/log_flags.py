"""The flags about a program's own log lines, the same for every program of ours. Cheap to import, as `--help` is."""

from __future__ import annotations

from raykeeper.settings.flags import Flag

LOG_FLAGS = (
    Flag(
        "log-level",
        "Lowest level that is logged: debug, info, warning, error, panic, or a number for debug.",
        default="info",
        variable="RAYKEEPER_LOG_LEVEL",
    ),
    Flag("log-stdout-encoder", "Log format on standard output: json or console.", default="json"),
    Flag("log-file-path", "Also log to this file, rotated at 500 MB, ten files kept."),
    Flag("log-file-encoder", "Log format in the file: json or console.", default="json"),
)
