"""YAML that users write into a field of a spec, as the JSON that Ray takes. Pure."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from raykeeper.api.meta import JSON

if TYPE_CHECKING:
    from yaml import SafeLoader

MOST_NODES: Final = 100_000
"""Values in one text. Aliases let a few lines stand for billions, which would fill the memory when written out."""
_TOO_MANY: Final = f"it stands for more than {MOST_NODES} values"


def parse_mapping(text: str) -> JSON:
    """The mapping that a text is; empty where it has nothing but comments. Raises `ValueError` with what is wrong."""
    if not text.strip():
        return {}
    import yaml  # 25 ms, and most specs have no such text

    try:
        found: Any = yaml.load(text, _bounded_loader())  # noqa: S506 - a safe loader that is bounded
        _check_size(found)
        plain: JSON = msgspec.json.decode(msgspec.json.encode({} if found is None else found), type=dict)
    except (yaml.YAMLError, TypeError, UnicodeError, msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"it is no YAML mapping that Ray could read: {error}") from error
    return plain


@cache
def _bounded_loader() -> type[SafeLoader]:
    """A loader that stops at too many merged values: they are copied while a text is read, before it has a size."""
    import yaml

    class BoundedLoader(yaml.SafeLoader):
        merged = 0

        def flatten_mapping(self, node: yaml.MappingNode) -> None:
            for key, value in node.value:
                if key.tag == "tag:yaml.org,2002:merge":
                    self._count(value.value if isinstance(value, yaml.SequenceNode) else [value])
            super().flatten_mapping(node)

        def _count(self, sources: list[yaml.Node]) -> None:
            for source in sources:
                if isinstance(source, yaml.MappingNode):
                    self.flatten_mapping(source)
                    self.merged += len(source.value)
                if self.merged > MOST_NODES:
                    raise ValueError(_TOO_MANY)

    return BoundedLoader


def _check_size(found: Any) -> None:
    left, count = [found], 0
    while left:
        value = left.pop()
        count += 1
        if count > MOST_NODES:
            raise ValueError(_TOO_MANY)
        if isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list):
            left += value
