"""What kubeconfig files say about one context. Several are merged as kubectl does: who names a thing first has it."""

from __future__ import annotations

import base64
import binascii
import copy
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

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


class KubeconfigFile:
    """One file as it was read. Its sections are parts of `content`, so what is changed in them can be written back."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.content = _content(path)
        self._written = copy.deepcopy(self.content)

    def entries(self, kind: str) -> list[dict[str, Any]]:
        """The entries of `clusters`, `contexts` or `users`."""
        entries = self.content.get(f"{kind}s") or []
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise _not_a_kubeconfig(self.path)
        return entries

    def save(self) -> None:
        """Write what changed, whole or not at all."""
        if self.content == self._written:
            return
        target = self.path.resolve()
        with tempfile.NamedTemporaryFile("w", dir=target.parent, prefix=".kubeconfig-", delete=False) as file:
            yaml.safe_dump(self.content, file, default_flow_style=False)
        try:
            Path(file.name).chmod(target.stat().st_mode & 0o777)
            Path(file.name).replace(target)
        except OSError:
            Path(file.name).unlink()
            raise
        self._written = copy.deepcopy(self.content)


@dataclass(frozen=True)
class Kubeconfig:
    """One context with its cluster and user."""

    source: str
    """`/home/ray/.kube/config, context bed`."""
    cluster: Section
    user: Section
    namespace: str
    files: tuple[KubeconfigFile, ...]

    def save(self) -> None:
        """Write changes made to the sections' fields back to their files."""
        for file in self.files:
            file.save()


def read_kubeconfig(paths: Sequence[Path], context: str | None) -> Kubeconfig:
    """The named or current context of the merged files. Raises `Misconfigured` naming the file and the cause."""
    names = os.pathsep.join(str(path) for path in paths)
    files = tuple(KubeconfigFile(path) for path in paths if path.exists())
    if not files:
        raise Misconfigured("kubeconfig", names, "there is no such file")
    context = context or next(filter(None, (file.content.get("current-context") for file in files)), None)
    if not context:
        raise Misconfigured("kubeconfig", names, "it has no current-context; name one")
    chosen = _section(files, "context", context, names)
    source = f"{names}, context {context}"
    return Kubeconfig(
        source=source,
        cluster=_section(files, "cluster", chosen.fields.get("cluster"), source),
        user=_user(files, chosen.fields.get("user"), source),
        namespace=chosen.fields.get("namespace") or "default",
        files=files,
    )


def _content(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text())
    except OSError as exc:
        raise Misconfigured("kubeconfig", str(path), f"it cannot be read ({exc.strerror})") from exc
    except (yaml.YAMLError, UnicodeDecodeError) as exc:
        raise Misconfigured("kubeconfig", str(path), f"it is not YAML ({_one_line(exc)})") from exc
    if not isinstance(content, dict):
        raise _not_a_kubeconfig(path)
    return content


def _not_a_kubeconfig(path: Path) -> Misconfigured:
    return Misconfigured("kubeconfig", str(path), "it is YAML, but not a kubeconfig")


def _section(files: Sequence[KubeconfigFile], kind: str, name: str | None, source: str) -> Section:
    """The first entry of that name, with the folder of its file."""
    for file in files:
        for entry in file.entries(kind):
            if entry.get("name") == name:
                fields = entry.get(kind) or {}
                if not isinstance(fields, dict):
                    raise _not_a_kubeconfig(file.path)
                return Section(fields, file.path.absolute().parent, source)
    raise Misconfigured("kubeconfig", source, f"it has no {kind} named {name!r}")


def _user(files: Sequence[KubeconfigFile], name: str | None, source: str) -> Section:
    """The user's entry; a context without one sends anonymous requests."""
    return _section(files, "user", name, source) if name else Section({}, Path(), source)


def _one_line(exc: Exception) -> str:
    return " ".join(str(exc).split())
