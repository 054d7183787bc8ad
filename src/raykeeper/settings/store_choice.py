"""Which store a program was told of, as the user said it: a URL, or a backend with the rest. `storage/` reads it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from raykeeper.errors import Misconfigured
from raykeeper.settings.sources import Said, Sources
from raykeeper.settings.values import parse_optional_path, parse_text


class StoreChoice(NamedTuple):
    """One place; either the URL is set, or the backend."""

    url: str = ""
    backend: str = ""
    root_dir: str = ""
    config_file: Path | None = None


def read_store_choice(sources: Sources, url_flag: str, missing: Misconfigured, does: str) -> StoreChoice:
    """The store that counts: a URL, unless a flag names a backend and only a variable the URL.

    Raises `missing` where neither is said. `does` is what the history does there, for messages.
    """
    url, backend = sources.find_text(url_flag), sources.find_text("storage-backend")
    if url and not (backend and backend.is_flag and not url.is_flag):
        _check_alone(sources, url, does)
        return StoreChoice(url=url.text)
    if not backend:
        raise missing
    return StoreChoice(
        backend=backend.text.lower(),
        root_dir=sources.read("storage-root-dir", parse_text, ""),
        config_file=sources.read("storage-backend-config-path", parse_optional_path, None),
    )


def _check_alone(sources: Sources, url: Said, does: str) -> None:
    """Refuse what says the store a second time and would count as much as the URL."""
    for name in ("storage-backend", "storage-root-dir", "storage-backend-config-path"):
        said = sources.find_text(name)
        if said and said.is_flag >= url.is_flag:
            raise Misconfigured(
                said.setting, said.text, f"{url.setting} already says where the history {does}; keep one"
            )
