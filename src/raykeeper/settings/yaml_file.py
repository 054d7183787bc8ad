"""Settings files in YAML, or JSON, which is YAML too. A mistake in one stops the program by the line it is in.

Nodes are PyYAML's own: they know their lines, which plain values do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from raykeeper.errors import Misconfigured

MAX_BYTES = 128 << 10
"""Of a file: a thousand rules. YAML is read at some 200 KB a second."""
MAX_TEXT = 256
T = TypeVar("T")


class YamlFileError(ValueError):
    """What is wrong, and in which line."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(f"line {line}: {text}")


def read_yaml_file(setting: str, path: Path, parse: Callable[[bytes], T]) -> T:
    """What `parse` makes of the file. Raises Misconfigured, which names the file and the line."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except OSError as exc:
        raise Misconfigured(setting, str(path), f"it must be a readable file ({exc.strerror})") from exc
    try:
        return parse(text)
    except YamlFileError as exc:
        raise Misconfigured(setting, str(path), str(exc)) from exc


def parse_yaml(text: bytes, needs: str) -> Any:
    """The root node. `needs` names what an empty file lacks. Raises YamlFileError."""
    import yaml  # here, because it costs a program without such a file 3 MB

    if len(text) > MAX_BYTES:
        raise YamlFileError(1, f"it is longer than {MAX_BYTES} bytes")
    try:
        root = yaml.compose(text.decode(), Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        raise YamlFileError(mark.line + 1 if mark else 1, f"no YAML: {exc.problem or exc.context}") from exc
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as exc:
        raise YamlFileError(1, f"no YAML: {exc}") from exc
    if root is None:
        raise YamlFileError(1, f"it is empty; it needs {needs}")
    return root


def line_of(node: Any) -> int:
    return int(node.start_mark.line) + 1


def members_of(node: Any, known: Mapping[str, object] | tuple[str, ...]) -> dict[str, Any]:
    """The members of a mapping, each once, none unknown."""
    found: dict[str, Any] = {}
    for key, value in pairs_of(node):
        name = text_of(key)
        if name not in known:
            raise YamlFileError(line_of(key), f"{name!r} is not known; there are {', '.join(known)}")
        if name in found:
            raise YamlFileError(line_of(key), f"{name!r} is given twice")
        found[name] = value
    return found


def pairs_of(node: Any) -> Iterator[tuple[Any, Any]]:
    if node.id != "mapping":
        raise YamlFileError(line_of(node), "here must be names with values")
    yield from node.value


def elements_of(node: Any, what: str, most: int) -> list[Any]:
    """The elements of a list that is not empty."""
    if node.id != "sequence" or not node.value:
        raise YamlFileError(line_of(node), f"{what} must be a list")
    if len(node.value) > most:
        raise YamlFileError(line_of(node), f"there are more than {most} {what}")
    return list(node.value)


def text_of(node: Any, limit: int = MAX_TEXT) -> str:
    if node.id != "scalar" or not 0 < len(node.value) <= limit or not node.value.isprintable():
        raise YamlFileError(line_of(node), f"here must be a text of at most {limit} characters")
    return str(node.value)


def texts_of(node: Any) -> dict[str, str]:
    return {text_of(key): text_of(value) for key, value in pairs_of(node)}
