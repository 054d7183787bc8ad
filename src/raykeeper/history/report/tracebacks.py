"""Tracebacks as their readers want them: the frame in the user's own code, and the frames of others folded. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from raykeeper.history.text import counted

_FRAME = re.compile(r'  File "(?P<path>[^"\n]+)", line (?P<line>\d+)')
_OF_OTHERS = re.compile(r"(?:site|dist)-packages/|/lib/python\d|^python/ray/|^<|/ray/_private/workers/")
"""Where code is that the user did not write: installed packages, Python itself, Ray's compiled parts."""
_OF_LIBRARY = re.compile(r"-packages/ray/(?:data|rllib|serve|train|tune)/")
_FOLDED_LEAST = 2  # one frame is as short as the word that it was folded


def user_frame(trace: str) -> str:
    """`file.py:14`: the deepest frame in the user's own code; empty where there is none."""
    own = [found for found in _FRAME.finditer(trace) if not _OF_OTHERS.search(found["path"])]
    return f"{own[-1]['path'].rpartition('/')[2]}:{own[-1]['line']}" if own else ""


def at_frame(trace: str) -> str:
    """The same, to stand behind other words."""
    frame = user_frame(trace)
    return f" ({frame})" if frame else ""


def is_raised_by_library(trace: str) -> bool:
    """Whether the last frame is in one of Ray's libraries: such an exception mostly tells of another one."""
    frames = list(_FRAME.finditer(trace))
    return bool(frames) and bool(_OF_LIBRARY.search(frames[-1]["path"]))


def folded(text: str) -> str:
    """The text with runs of others' frames as one line each."""
    return "\n".join(_folded_lines(text.splitlines()))


def _folded_lines(lines: list[str]) -> Iterator[str]:
    run: list[str] = []
    frames = 0
    for line in lines:
        found = _FRAME.match(line)
        is_below_frame = bool(run) and line.startswith("    ")
        if found and _OF_OTHERS.search(found["path"]):
            frames += 1
            run.append(line)
        elif is_below_frame and not found:
            run.append(line)
        else:
            yield from _run(run, frames)
            run, frames = [], 0
            yield line
    yield from _run(run, frames)


def _run(run: list[str], frames: int) -> Iterator[str]:
    if frames >= _FOLDED_LEAST:
        yield f"  ... {counted(frames, 'frame')} of Ray and other packages"
    else:
        yield from run
