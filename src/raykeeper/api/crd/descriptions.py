"""The prose of a class: its docstring, and the string written under each of its fields."""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise
from typing import Any, cast


def class_doc(item: type[Any]) -> str:
    """The docstring of a class on one line; empty when it wrote none."""
    return _one_line(ast.get_docstring(_definition(item)) or "")


def field_docs(item: type[Any]) -> dict[str, str]:
    """The string written under each field of a class and of those it inherits from."""
    docs: dict[str, str] = {}
    for base in reversed(item.__mro__):
        if "__annotations__" in vars(base):
            docs |= _own_field_docs(base)
    return docs


def _own_field_docs(item: type[Any]) -> dict[str, str]:
    docs = {}
    for field, below in pairwise(_definition(item).body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and (text := _text(below)):
            docs[field.target.id] = _one_line(text)
    return docs


def _text(statement: ast.stmt) -> str:
    """The string a statement consists of; empty when it is anything else."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return statement.value.value if isinstance(statement.value.value, str) else ""
    return ""


def _definition(item: type[Any]) -> ast.ClassDef:
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(item))).body
    return cast("ast.ClassDef", definition)


def _one_line(text: str) -> str:
    return " ".join(text.split())
