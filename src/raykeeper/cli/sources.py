"""Options that say where the history is: those of every command that reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Store = Annotated[
    str,
    typer.Option(
        envvar="RAYKEEPER_STORE_URL",
        help="Where the history is: s3://bucket/prefix, gs://, azblob://, oss:// or file:///folder.",
    ),
]
Server = Annotated[str, typer.Option(help="Address of a history server to ask instead of a store.")]
Token = Annotated[
    str,
    typer.Option(
        help="Token for that server, which others on this machine can see in the list of processes: better in the "
        "variable RAYKEEPER_TOKEN. Default: that of `raykeeper login`."
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(help="File with the token for that server. Default: RAYKEEPER_TOKEN, or RAYKEEPER_AUTH_TOKEN."),
]
CacheDir = Annotated[
    Path | None, typer.Option(help="Folder for copies of objects. Default: `~/.cache/raykeeper-history`.")
]
