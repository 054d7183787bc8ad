"""The Python modules of the API server's protobuf files, as `protoc` writes them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import google.api
import grpc_tools
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools import protoc

SOURCES = Path(__file__).parent.parent / "src"
FOLDER = SOURCES / "raykeeper" / "apiserver" / "protos"
_INCLUDED = (
    SOURCES,
    Path(grpc_tools.__file__).parent / "_proto",
    Path(next(iter(google.api.__path__))).parent.parent,
)


def proto_modules() -> Iterator[tuple[Path, str]]:
    """Every module and its types, with what it should contain."""
    with tempfile.TemporaryDirectory() as made:
        _run(f"--python_out={made}", f"--pyi_out={made}")
        for path in sorted(Path(made).rglob("*_pb2.py*")):
            yield SOURCES / path.relative_to(made), path.read_text()


def described_protos() -> FileDescriptorSet:
    """What the files say, comments included."""
    with tempfile.NamedTemporaryFile() as made:
        _run("--include_source_info", f"--descriptor_set_out={made.name}")
        return FileDescriptorSet.FromString(Path(made.name).read_bytes())


def _run(*arguments: str) -> None:
    files = [str(path.relative_to(SOURCES)) for path in sorted(FOLDER.glob("*.proto"))]
    command: Sequence[str] = ["protoc", *(f"-I{folder}" for folder in _INCLUDED), *arguments, *files]
    if protoc.main(command) != 0:
        raise SystemExit("protoc failed: see above")
