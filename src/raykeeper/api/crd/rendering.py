"""A CustomResourceDefinition as the YAML file of the Helm chart."""

from __future__ import annotations

from typing import Any

import yaml

from raykeeper.api.meta import JSON

NOTICE = "# Written by `make generate` from the types in src/raykeeper/api; edit those.\n"


def to_yaml(definition: JSON) -> str:
    """The definition as one YAML document, in the order of its keys."""
    return NOTICE + yaml.dump(definition, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)


class _Dumper(yaml.CSafeDumper):
    """Writes what occurs twice twice: anchors are hard to read, and not every tool knows them."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True
