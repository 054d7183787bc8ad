"""What is in the image, in CycloneDX's form: a file inside of it that scanners read."""

from __future__ import annotations

import email
import json
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from tools.image.debian import Pin
from tools.image.programs import PACKAGES

PLACE: Final = "usr/share/sbom/raykeeper.cdx.json"
_NAMESPACE: Final = uuid.UUID("6f0f3f0e-6a5a-5a53-9d5e-2f6d3e3c7b11")
Component = dict[str, Any]


def sbom(roots: Iterable[Path], pins: Iterable[Pin]) -> str:
    """The document about the parts of one image. The same parts give the same text."""
    python = sorted(_python_components(roots), key=lambda component: str(component["name"]))
    (subject,) = (component for component in python if component["name"] == "raykeeper")
    parts = [component for component in python if component is not subject]
    components = [*(_debian_component(pin) for pin in pins), *parts]
    content = json.dumps([subject, components])
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, content)}",
        "version": 1,
        "metadata": {"component": subject | {"type": "container"}},
        "components": components,
    }
    return json.dumps(document, indent=1) + "\n"


def _debian_component(pin: Pin) -> Component:
    version = quote(pin.version, safe="")
    purl = f"pkg:deb/debian/{quote(pin.name)}@{version}?arch={pin.architecture}&distro=debian-12"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": pin.name,
        "version": pin.version,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": pin.sha256}],
    }


def _python_components(roots: Iterable[Path]) -> Iterator[Component]:
    for root in roots:
        for file in sorted((root / PACKAGES).glob("*.dist-info/METADATA")):
            metadata = email.message_from_string(file.read_text())
            name, version = str(metadata["Name"]).lower().replace("_", "-"), str(metadata["Version"])
            purl = f"pkg:pypi/{name}@{version}"
            component: Component = {
                "type": "library",
                "bom-ref": purl,
                "name": name,
                "version": version,
                "purl": purl,
            }
            if expression := metadata["License-Expression"]:
                component["licenses"] = [{"expression": expression}]
            yield component
