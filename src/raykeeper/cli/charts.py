"""`raykeeper charts`: the Helm charts that belong to this version, for machines without a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

CHART_FOLDER: Final = (Path(__file__).parent / "helm-chart").resolve()
"""One folder per chart. In a checkout a link to `helm-chart/`, in the wheel the files themselves, without the CRDs."""
CHART_WITH_CRDS: Final = "kuberay-operator"
FOR_DEVELOPERS: Final = ("tests", "ci")
"""Folders of a chart that `helm package` leaves out too."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(charts)


def charts(
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to write the charts into, each as a folder of its own. Default: only list them."),
    ] = None,
) -> None:
    """Write the Helm charts of this version into a folder, ready for `helm install`; without --out list them."""
    folders = chart_folders()
    if out is None:
        typer.echo("".join(f"{folder.name}\n" for folder in folders), nl=False)
        return
    write_charts(folders, out)
    typer.echo(f"helm install kuberay-operator {out / CHART_WITH_CRDS}")


def chart_folders() -> list[Path]:
    """Where the charts are, by name."""
    from raykeeper.errors import Misconfigured

    folders = sorted(path.parent for path in CHART_FOLDER.glob("*/Chart.yaml"))
    if not folders:
        raise Misconfigured("charts", str(CHART_FOLDER), "there are none: this installation is not whole")
    return folders


def write_charts(folders: list[Path], out: Path) -> None:
    """Copy them. A chart that is there already is left alone, and nothing is written: somebody may have changed it."""
    import shutil

    from raykeeper.api.crd.files import CRD_FOLDER
    from raykeeper.errors import Misconfigured

    for folder in folders:
        if (out / folder.name).exists():
            raise Misconfigured("--out", str(out), f"{folder.name} is there already; name another folder or remove it")
    for folder in folders:
        shutil.copytree(folder, out / folder.name, ignore=shutil.ignore_patterns(*FOR_DEVELOPERS))
    shutil.copytree(CRD_FOLDER, out / CHART_WITH_CRDS / "crds", dirs_exist_ok=True)
