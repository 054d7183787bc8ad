"""Tracebacks out of texts: which exceptions, from which frames and calls, and which of them its user means. Pure.

A text may be a log with anything around its tracebacks, an error of a task whose beginning Ray cut off, or what the
crash handler of Python wrote. Frames are told apart by whose code they are in: the user's, Ray's, or another package's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

import msgspec

from raykeeper.history.report.model import CodeLocation
from raykeeper.history.text import counted, without_ansi

HEADER = "Traceback (most recent call last):"
FRAMES_LIMIT = 200
"""Of one exception, its first and last together: a recursion has a thousand equal ones."""
_FRAME = re.compile(r'(?:>\s*|\s*)File "(?P<path>[^"\n]+)", line (?P<line>\d+),?(?: in (?P<function>.*))?$')
_BOXED = re.compile(r"[│|] (?P<path>/\S+\.py):(?P<line>\d+) in (?P<function>\S+)")
"""A frame as rich draws it."""
_CALL = re.compile(r"(?P<error>\S.*?[:,] )?ray::(?P<call>.+?)(?:\(\))? \(pid=\d+")
"""A remote call, as Ray writes it above its frames; behind the exception that wraps it, where that is shown."""
_CHAINS = (
    "The above exception was the direct cause of the following exception",
    "During handling of the above exception, another exception occurred",
)
_GROUP_EDGE = re.compile(r"^(?P<edge>\s*(?:[|+](?: |$)|\+-\+?-+ .*))")
"""How Python draws groups of exceptions."""
_GROUP_RULE = re.compile(r"^\s*\+-\+?-*(?: [\d.]+ -+)?\s*$")
_EXCEPTION = re.compile(
    r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Warning|Failure|Fault)\b(?:\W|$)"
)
_ANY_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:\([\w.]*\))?(?:: |:?$)")
"""What may stand under frames: exceptions need not be called so."""
_LOGGED = re.compile(
    r"(?P<prefix>[^\n]{3,160}?(?:[\])>|] |\]: | - ))(?:[^\n]{0,80}: )?"
    r"(?=Traceback \(most recent call last\):|  File \")"
)
"""A line of a traceback that a logger began with the same words as the next."""
_NOISE = re.compile(
    r"^Exception ignored in|^Task exception was never retrieved|^Exception in thread |^Future exception was never"
    r"|^future: <Task finished|^Exception in callback |^Unhandled exception in thread"
    r"|^Error in atexit|^Exception in atexit"
)
"""Before tracebacks of what nobody waits for: the program goes on."""
_FATAL = re.compile(r"Fatal Python error: .+")
_STACK = re.compile(r"(?:Current thread|Thread|Stack) ?.*\(most recent call first\):")

_OF_PYTHON = re.compile(r"/lib(?:64)?/python3?\d*(?:\.\d+)?/(?!(?:site|dist)-packages/)|^<|/python\d\d\.zip/")
_OF_PACKAGE = re.compile(r"(?:site|dist)-packages/(?P<package>[^/]+)")
_OF_RAY = re.compile(r"(?:site|dist)-packages/ray/|(?:^|/)python/ray/|/ray/_private/workers/|^(?:bazel-out|external)/")
_OF_LIBRARY = re.compile(r"-packages/ray/(?:data|rllib|serve|train|tune)/")
_SCRIPT = re.compile(r"/bin/[^/.]+$")
"""What installers write for commands: two lines that call a package."""
_OF_CYTHON = (".pyx", ".pxi", ".pxd", "stringsource")
_MESSAGE_LINES = 4
"""Between a wrapper and the traceback in its message: `[Rank 1 Error Snippet]:`."""
_FRAME_INDENT = 2
_OF_JAVA = ": "
"""How py4j begins the line with Java's own exception, below `An error occurred while calling o35.load.`."""
_WORD = re.compile(r"\w")
_FOLDED_LEAST = 2  # one frame is as short as the word that it was folded


@dataclass(frozen=True)
class Frame:
    path: str
    line: int
    function: str

    @property
    def is_of_ray(self) -> bool:
        return bool(_OF_RAY.search(self.path))

    @property
    def is_of_library(self) -> bool:
        """Whether it is in Ray Data, RLlib, Serve, Train or Tune."""
        return bool(_OF_LIBRARY.search(self.path))

    @property
    def is_users(self) -> bool:
        """Whether it is in no installed package, nor in Python itself."""
        is_installed = _OF_PACKAGE.search(self.path) or _OF_PYTHON.search(self.path) or _SCRIPT.search(self.path)
        return not is_installed and not self.is_of_ray and not self._is_compiled

    @property
    def _is_compiled(self) -> bool:
        """Whether Cython made it: its file is named as at build time, its function with the module before it."""
        is_relative = not self.path.startswith(("/", "<"))
        return is_relative and (self.path.endswith(_OF_CYTHON) or "." in self.function)

    @property
    def package(self) -> str:
        """The installed package that it is in; empty for Ray, Python and the user's files."""
        found = _OF_PACKAGE.search(self.path)
        return found["package"] if found and not self.is_of_ray else ""

    @property
    def location(self) -> CodeLocation:
        return CodeLocation(self.path.rpartition("/")[2], self.line, self.function, self.path)


@dataclass(frozen=True)
class Raised:
    """One exception, and the frames it came through."""

    error: str
    """Its first line, in its own words."""
    frames: tuple[Frame, ...] = ()
    call: str = ""
    """The remote call that raised it, as Ray names it."""
    heading: str = ""
    """The line before its frames."""
    first: int = 0
    """Number of its first line in the text, from 0; `last` of the last that belongs to it."""
    last: int = 0

    @property
    def users_frame(self) -> Frame | None:
        """The deepest frame in the user's own code; where all is installed, in the package that was called first."""
        own = [frame for frame in self.frames if frame.is_users]
        if own:
            return own[-1]
        packages = [frame.package for frame in self.frames if frame.package]
        return next((frame for frame in reversed(self.frames) if packages and frame.package == packages[0]), None)

    @property
    def is_users(self) -> bool:
        return any(frame.is_users for frame in self.frames)

    @property
    def is_by_library(self) -> bool:
        """Whether one of Ray's libraries raised it: mostly in the name of another exception."""
        return bool(self.frames) and self.frames[-1].is_of_library


@dataclass(frozen=True)
class Traceback:
    """Exceptions that followed from each other, as they are written: the first cause first."""

    raised: tuple[Raised, ...]

    @property
    def is_noise(self) -> bool:
        """Whether the program went on after it."""
        return announces_noise(self.raised[0].heading)

    @property
    def last(self) -> Raised:
        return self.raised[-1]

    @property
    def users(self) -> Raised:
        """The exception that its user means: the last that is no wrapper and came through the user's code.

        Where the same error was raised again on the way out, the place where it came from.
        """
        telling = [one for one in self.raised if not is_wrapper(one.error)] or list(self.raised)
        own = [one for one in telling if one.users_frame is not None] or telling
        found = own[-1]
        return next((one for one in own if one.error == found.error and one.is_users), found)


_WRAPPERS = re.compile(
    r"(?:ray\.[\w.]+\.)?(?:RayData)?UserCodeException\b|(?:ray\.exceptions\.)?(?:RayTaskError|UnserializableException)\b"
    r"|(?:ray\.[\w.]+\.)?(?:WorkerGroupError|ControllerError|TrainingFailedError|UserExceptionWithTraceback"
    r"|WorkerHealthCheckFailedError|TuneError|_Tune\w+Error)\b"
    r"|(?:\w+\.)*(?:Base)?ExceptionGroup\b|(?:\w+\.)*_?RemoteTraceback\b|(?:tenacity\.)?RetryError\b"
    r"|(?:concurrent\.futures\.process\.)?BrokenProcessPool\b|(?:\w+\.)*ProcessRaisedException\b"
    r"|(?:\w+\.)*ChildFailedError\b|(?:hydra\.errors\.)?InstantiationException\b"
    r"|(?:\w+\.)*\w+: Caught \w+ in (?:DataLoader worker process|pin memory thread|replica)\b"
)
"""They are raised from whatever a user's function raised, which is what the user looks for."""


def is_wrapper(error: str) -> bool:
    """Whether an exception only tells that another one was raised."""
    return bool(_WRAPPERS.match(error))


def announces_noise(line: str) -> bool:
    """Whether a traceback of what nobody waits for may follow."""
    return bool(_NOISE.match(line))


def is_chain_line(line: str) -> bool:
    """Whether it stands between an exception and one that followed from it."""
    return line.startswith(_CHAINS)


def frame_in(line: str) -> Frame | None:
    """The frame that a line of a traceback names."""
    found = _FRAME.match(line) or _BOXED.match(line)
    return Frame(found["path"], int(found["line"]), (found["function"] or "").strip()) if found else None


def is_exception(line: str) -> bool:
    """Whether a line is that of an exception, as tracebacks end with."""
    return bool(_EXCEPTION.match(line))


@dataclass
class _Draft:
    """An exception that is being read."""

    first: int
    call: str = ""
    heading: str = ""
    frames: list[Frame] = field(default_factory=list)
    indent: int = 0
    """Of its exception, where the whole is indented: as within the message of another."""

    def raised(self, error: str, last: int) -> Raised:
        kept = self.frames
        if len(kept) > FRAMES_LIMIT:
            kept = [*kept[: FRAMES_LIMIT // 2], *kept[-FRAMES_LIMIT // 2 :]]
        return Raised(error.strip(), tuple(kept), self.call, self.heading, self.first, last)


class _Reader:
    """Takes a text line by line."""

    def __init__(self) -> None:
        self.found: list[Traceback] = []
        self._raised: list[Raised] = []
        self._draft: _Draft | None = None
        self._is_chained = False
        self._last_line = ""

    def take(self, number: int, line: str) -> None:
        if written := _written_as_json(line):
            self._take_whole(number, written)
            return
        bare = _without_edge(line)
        if not bare.strip():
            return
        if bare.startswith(_CHAINS):
            self._is_chained = True
        elif HEADER in bare:
            self._take_header(number, bare)
        elif call := _CALL.match(bare):
            self._take_call(number, bare, call)
        elif frame := frame_in(bare):
            self._take_frame(number, frame, indent=len(bare) - len(bare.lstrip()) - _FRAME_INDENT)
        elif self._draft is not None:
            self._take_below(number, bare)
        elif self._is_unsaid(number, bare):
            last = self._raised.pop()
            self._raised.append(replace(last, error=f"{last.error} {bare.strip().removeprefix(_OF_JAVA)}", last=number))
        elif self._is_before_chain(bare):
            self._raised = [Raised(bare.strip(), first=number, last=number)]
        self._last_line = bare.strip()

    def end(self) -> list[Traceback]:
        self._close()
        return self.found

    def _take_whole(self, number: int, text: str) -> None:
        """Tracebacks that stand in one line."""
        self._close()
        for trace in tracebacks_in(text):
            self.found.append(Traceback(tuple(replace(one, first=number, last=number) for one in trace.raised)))

    def _is_unsaid(self, number: int, line: str) -> bool:
        """Whether the first line of an exception announces the next: `Error(s) in loading state_dict for Net:`."""
        last = self._raised[-1] if self._raised else None
        if last is not None and line.startswith(_OF_JAVA) and number == last.last + 1:
            return True
        if last is None or not last.error.endswith(":") or not _WORD.search(line):
            return False
        is_begun = not is_wrapper(last.error) or ": " not in last.error
        return is_begun and number - last.last <= _MESSAGE_LINES

    def _is_before_chain(self, line: str) -> bool:
        """An exception whose frames are gone: it counts if another is said to follow from it."""
        return not self._raised and is_exception(line)

    def _take_header(self, number: int, line: str) -> None:
        """A traceback begins; within the message of an exception, what that one is about."""
        error, call = line.partition(HEADER)[0].rstrip(": "), ""
        if self._draft is not None and self._draft.frames and error:
            call = self._draft.call
            self._raised.append(self._draft.raised(error, number))
            self._is_chained = True
        elif self._raised and is_wrapper(self._raised[-1].error):
            self._is_chained = self._is_chained or number - self._raised[-1].last <= _MESSAGE_LINES
        self._begin(number, call)

    def _begin(self, number: int, call: str) -> None:
        if not self._is_chained:
            self._close()
        self._is_chained = False
        self._draft = _Draft(number, call, self._last_line)

    def _take_call(self, number: int, line: str, call: re.Match[str]) -> None:
        """The error of another task begins here, perhaps behind the exception that brought it."""
        if self._draft is not None and (self._draft.frames or self._draft.call):
            self._raised.append(self._draft.raised((call["error"] or line).rstrip(":, "), number))
            self._draft, self._is_chained = None, True
        if self._draft is None:
            self._begin(number, call["call"])
        else:
            self._draft.call = call["call"]

    def _take_frame(self, number: int, frame: Frame, indent: int) -> None:
        if self._draft is None:
            self._begin(number, "")
        if self._draft is not None:
            self._draft.indent = self._draft.indent if self._draft.frames else max(0, indent)
            self._draft.frames.append(frame)

    def _take_below(self, number: int, line: str) -> None:
        """Code of a frame, or the exception under the last one."""
        draft = self._draft
        if draft is None or line[0] in "│╭╰" or not _WORD.search(line):
            return
        if line[0].isspace() and not (draft.indent and _ANY_EXCEPTION.match(line[draft.indent :])):
            return
        if not _ANY_EXCEPTION.match(line.strip()) and not draft.frames:
            return
        self._raised.append(draft.raised(line, number))
        self._draft = None

    def _close(self) -> None:
        if self._raised and (len(self._raised) > 1 or self._raised[0].frames or self._raised[0].call):
            self.found.append(Traceback(tuple(self._raised)))
        self._raised, self._draft, self._is_chained = [], None, False


def tracebacks_in(text: str) -> list[Traceback]:
    """Every traceback of a text, in its order."""
    reader = _Reader()
    for number, line in enumerate(bare_lines(without_ansi(text).split("\n"))):
        reader.take(number, line)
    return reader.end()


def _written_as_json(line: str) -> str:
    """The text with a traceback in an entry of a log that is JSON; empty for any other line."""
    if not line.startswith("{") or HEADER not in line:
        return ""
    try:
        entry = msgspec.json.decode(line, type=dict[str, object])
    except msgspec.DecodeError:
        return ""
    return next((text for text in entry.values() if isinstance(text, str) and HEADER in text), "")


def bare_lines(lines: Iterable[str]) -> Iterator[str]:
    """The lines without what a logger wrote before each line of a traceback: `ERROR 03-27 22:19:40 [core.py:367] `."""
    prefix = ""
    for line in lines:
        if prefix and not line.startswith(prefix.rstrip()):
            prefix = ""
        if not prefix and (found := _LOGGED.match(line)):
            prefix = found["prefix"]
        yield line[len(prefix) :] if prefix else line


def _without_edge(line: str) -> str:
    """Without what Python draws around the members of a group of exceptions."""
    if _GROUP_RULE.match(line):
        return ""
    edge = _GROUP_EDGE.match(line)
    bare = line[edge.end() :] if edge else line
    return bare.replace("Exception Group Traceback", "Traceback")


def crash_frame(text: str) -> Frame | None:
    """Where the user's code was when a signal ended the process, by Python's own crash handler."""
    frames = (frame_in(line) for line in crash_stack(text))
    return next((frame for frame in frames if frame is not None and frame.is_users), None)


def crash_stack(text: str) -> list[str]:
    """The lines about the frames that the thread was in which the signal struck, the innermost first."""
    _, mark, stack = text.partition("Fatal Python error:")
    lines = stack.split("\n") if mark else []
    begins = [number for number, line in enumerate(lines) if _STACK.match(line)]
    current = [number for number in begins if lines[number].startswith("Current")]  # it may stand behind all others
    begin = next(iter(current or begins), len(lines))
    return list(takewhile(frame_in, lines[begin + 1 :]))


def crash_words(text: str) -> str:
    """How Python calls what ended the process: `Fatal Python error: Segmentation fault`; empty where it did not say."""
    found = _FATAL.search(text)
    return found[0].strip() if found else ""


def user_location(text: str) -> CodeLocation | None:
    """Where in the user's own code the last error of a text was raised; None where no frame is the user's."""
    found = tracebacks_in(text)
    frame = found[-1].users.users_frame if found else None
    return frame.location if frame else None


def folded(text: str) -> str:
    """The text with runs of others' frames as one line each."""
    return "\n".join(_folded_lines(text.splitlines()))


def _folded_lines(lines: Iterable[str]) -> Iterator[str]:
    run: list[str] = []
    frames = 0
    for line in lines:
        found = frame_in(line)
        is_below_frame = bool(run) and line.startswith("    ")
        if found and not found.is_users:
            frames += 1
            run.append(line)
        elif is_below_frame and not found:
            run.append(line)
        else:
            yield from _run(run, frames)
            run, frames = [], 0
            yield line
    yield from _run(run, frames)


def _run(run: Sequence[str], frames: int) -> Iterator[str]:
    if frames >= _FOLDED_LEAST:
        yield f"  ... {counted(frames, 'frame')} of Ray and other packages"
    else:
        yield from run
