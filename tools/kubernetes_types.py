"""Writes the slice of Kubernetes' OpenAPI document that the CRDs are made from, as a real API server serves it.

Run it by hand after the Kubernetes of the test bed got a new version, and then `make generate`.
"""

from __future__ import annotations

import json

from bed.binaries import KUBERNETES
from bed.control_plane import ControlPlane
from bed.runs import end_run, new_run
from raykeeper.api.crd.kubernetes import DOCUMENTS, SLICE_FILE, slice_of, wanted_types
from raykeeper.api.meta import JSON


def served_slice(plane: ControlPlane) -> JSON:
    """The content of the file, from a control plane that runs."""
    schemas: JSON = {}
    for document in DOCUMENTS:
        schemas |= plane.admin.get(document)["components"]["schemas"]
    return {"kubernetes": KUBERNETES, "schemas": slice_of(schemas, wanted_types())}


def main() -> None:
    """Start a control plane, ask it, write the file and end the control plane."""
    run = new_run()
    try:
        plane = ControlPlane.create(run / "own-openapi")
        plane.up()
        SLICE_FILE.write_text(json.dumps(served_slice(plane), indent=1) + "\n")
    finally:
        end_run(run)


if __name__ == "__main__":
    main()
