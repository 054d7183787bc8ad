"""How serious a line of a log is, by the words of Python's loggers, of Ray's core and of tracebacks. Pure."""

from __future__ import annotations

import re
from typing import Literal

Level = Literal["error", "warning", "info", "debug", ""]

_LOOKED_AT = 400  # characters at the beginning of a line, where loggers write its level
_CORE = r"\[?\d{4}-\d\d-\d\d [\d:,.]+ (?:\(\w+\) )?"  # how lines of Ray's core begin
_ERROR = re.compile(
    rf"\b(?:ERROR|CRITICAL|FATAL)\b|{_CORE}[EF] \d|Traceback \(most recent call last\)|\*\*\* SIG\w+ received"
    r"|(?:^|[\s.(\"'])[A-Z]\w*(?:Error|Exception)\b(?::|\(|$)|\b[Ee]rror:|\b(?:CUDA|NCCL) error\b|Segmentation fault"
    r"|Fatal Python error|\bfatal:|\bpanic:"
)
_WARNING = re.compile(rf"\bWARN(?:ING)?\b|{_CORE}W \d|\b[A-Z]\w*Warning:")
_INFO = re.compile(rf"\bINFO\b|{_CORE}I \d")
_DEBUG = re.compile(rf"\b(?:DEBUG|TRACE)\b|{_CORE}D \d")
_IN_ERRORS = (b"rror", b"ERROR", b"CRITICAL", b"FATAL", b"atal", b"xception", b"Traceback", b" E ", b" F ", b" SIG")
_ALSO_IN_ERRORS = (b"entation fault", b"panic:")


def level_of(line: str) -> Level:
    """Of one line without colours."""
    begin = line[:_LOOKED_AT]
    if _ERROR.search(begin):
        return "error"
    if _WARNING.search(begin):
        return "warning"
    if _INFO.search(begin):
        return "info"
    return "debug" if _DEBUG.search(begin) else ""


def may_have_error(text: bytes) -> bool:
    """Whether a line of the text may be an error: a hundred times quicker than looking at each."""
    return any(word in text for word in (*_IN_ERRORS, *_ALSO_IN_ERRORS))
