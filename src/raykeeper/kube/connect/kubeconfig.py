"""What kubeconfig files say about one context. Importing this module is expensive: it loads the official client.

Of that client's loader (`kubernetes` 37) only the merging of files and the exec plugins are used. Its reading of users
hides a failed exec plugin behind anonymous requests, keeps the newline of a token file, fails for a context without a
user, and refreshes OIDC tokens without verifying the provider's certificate.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from kubernetes.aio.config.kube_config import KubeConfigMerger

from raykeeper.errors import Misconfigured


@dataclass(frozen=True)
class Section:
    """A part of a kubeconfig and the folder that its relative paths start from."""

    fields: dict[str, Any]
    folder: Path
    source: str
    """What messages call it."""

    def text(self, name: str) -> str | None:
        """The content that `name`-data carries in base64 or that the file called by `name` holds."""
        try:
            if data := self.fields.get(f"{name}-data"):
                return base64.b64decode(data, validate=True).decode()
            if path := self.fields.get(name):
                return (self.folder / str(path)).read_text()
        except OSError as exc:
            raise self.unusable(f"{name} {exc.filename} cannot be read ({exc.strerror})") from exc
        except (binascii.Error, UnicodeDecodeError) as exc:
            raise self.unusable(f"its {name} is not text, or not in base64") from exc
        return None

    def unusable(self, cure: str) -> Misconfigured:
        return Misconfigured("kubeconfig", self.source, cure)


@dataclass(frozen=True)
class Kubeconfig:
    """One context with its cluster and user."""

    source: str
    """`/home/ray/.kube/config, context bed`."""
    cluster: Section
    user: Section
    namespace: str
    save: Callable[[], None]
    """Writes changes made to the sections' fields back to their files."""


def read_kubeconfig(paths: Sequence[Path], context: str | None) -> Kubeconfig:
    """The named or current context of the merged files. Raises `Misconfigured` naming the file and the cause."""
    files = os.pathsep.join(str(path) for path in paths)
    merger = _merged(paths, files)
    merged = merger.config.value
    context = context or merged.get("current-context")
    if not context:
        raise Misconfigured("kubeconfig", files, "it has no current-context; name one")
    chosen = _section(merged["contexts"], "context", context, files)
    source = f"{files}, context {context}"
    cluster = _section(merged["clusters"], "cluster", chosen.fields.get("cluster"), source)
    return Kubeconfig(
        source=source,
        cluster=cluster,
        user=_user(merged["users"], chosen.fields.get("user"), source),
        namespace=chosen.fields.get("namespace") or "default",
        save=merger.save_changes,
    )


def _merged(paths: Sequence[Path], files: str) -> Any:
    if not any(path.exists() for path in paths):
        raise Misconfigured("kubeconfig", files, "there is no such file")
    try:
        return KubeConfigMerger(files)
    except OSError as exc:
        raise Misconfigured("kubeconfig", files, f"it cannot be read ({exc.strerror})") from exc
    except yaml.YAMLError as exc:
        raise Misconfigured("kubeconfig", files, f"it is not YAML ({_one_line(exc)})") from exc
    except (TypeError, AttributeError, KeyError) as exc:  # what the merger runs into where the shape is another
        raise Misconfigured("kubeconfig", files, "it is YAML, but not a kubeconfig") from exc


def _section(entries: Sequence[Any], kind: str, name: str | None, source: str) -> Section:
    """The entry of that name; `entries` are the merger's nodes, each remembering its file."""
    for entry in entries:
        if entry.value.get("name") == name:
            return Section(entry.value.get(kind) or {}, Path(entry.path).absolute().parent, source)
    raise Misconfigured("kubeconfig", source, f"it has no {kind} named {name!r}")


def _user(entries: Sequence[Any], name: str | None, source: str) -> Section:
    """The user's entry; a context without one sends anonymous requests."""
    return _section(entries, "user", name, source) if name else Section({}, Path(), source)


def _one_line(exc: Exception) -> str:
    return " ".join(str(exc).split())
