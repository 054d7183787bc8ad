"""`python -m tools.image archive`: OCI archives into a folder; `tree`: the root file system, for the Dockerfile.

Both take the wheel that `python -m tools.wheel` makes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Final

from tools.image.debian import ARCHITECTURES, pins
from tools.image.pack import TIME
from tools.image.programs import ALL, VARIANTS, Variant
from tools.image.sbom import PLACE, sbom
from tools.image.tree import ImagePython, fixed_times, lay_base, lay_packages, lay_programs, machine_architecture

NAME: Final = "raykeeper"


def write_tree(root: Path, wheel: Path, variant: Variant, architecture: str) -> None:
    """The whole file system below `root`."""
    with tempfile.TemporaryDirectory() as scratch:
        downloads, native = Path(scratch, "debian"), root
        lay_base(root, architecture, downloads)
        if architecture != machine_architecture():
            native = Path(scratch, "native")
            lay_base(native, machine_architecture(), downloads)
        lay_packages(root, architecture, variant)
        lay_programs(root, wheel, variant)
        (root / PLACE).parent.mkdir(parents=True)
        (root / PLACE).write_text(sbom([root], pins(architecture)))
        ImagePython(native).compile(root)
        fixed_times(root, TIME)


def write_archives(folder: Path, wheel: Path, architectures: list[str], variants: list[Variant]) -> None:
    """One archive for each architecture and variant, named after the wheel's version."""
    from tools.image.archive import write_image

    version = wheel.name.split("-")[1]
    folder.mkdir(parents=True, exist_ok=True)
    for variant in variants:
        name = NAME if variant is ALL else f"{NAME}-{variant.name}"
        for architecture in architectures:
            target = folder / f"{name}-{version}-{architecture}.tar"
            write_image(target, f"{name}:{version}", wheel, variant, architecture)
            print(f"{target.stat().st_size / 1e6:6.1f} MB  {target}")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.image", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    tree = commands.add_parser("tree", help="the root file system as a folder")
    tree.add_argument("root", type=Path)
    tree.add_argument("--arch", choices=ARCHITECTURES, default=machine_architecture())
    tree.add_argument("--variant", choices=VARIANTS, default=ALL.name)
    archive = commands.add_parser("archive", help="OCI archives")
    archive.add_argument("--out", type=Path, default=Path("dist"))
    archive.add_argument("--arch", choices=ARCHITECTURES, action="append", help="default: all")
    archive.add_argument("--variant", choices=VARIANTS, action="append", help="default: all")
    for command in (tree, archive):
        command.add_argument("--wheel", type=Path, required=True)
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    """Do what the arguments say."""
    wanted = parse(arguments)
    if wanted.command == "tree":
        write_tree(wanted.root, wanted.wheel, VARIANTS[wanted.variant], wanted.arch)
    else:
        variants = [VARIANTS[name] for name in wanted.variant or VARIANTS]
        write_archives(wanted.out, wanted.wheel, wanted.arch or list(ARCHITECTURES), variants)


if __name__ == "__main__":
    main(sys.argv[1:])
