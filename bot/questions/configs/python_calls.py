"""Python in a message: keyword arguments of the trainers' and engines' classes. Parsed as text, never run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from bot.questions.configs.config_read import Entry
from bot.questions.configs.tables import Family, Row, families, row
from rules.records import dataclass

_MOST_CALLS = 40
_LONGEST_CALL = 8000
_DEEPEST = 30
_KEYWORD = re.compile(r"(?:^|[\s,(])([A-Za-z_]\w*)\s*=\s*(\"[^\"\n]*\"|'[^'\n]*'|[\w.\-+]+)")
_ASSIGNED = re.compile(
    r"(?m)^[ \t]*([A-Za-z_]\w{0,40})[ \t]*(?::[ \t]*\w+[ \t]*)?=[ \t]*"
    r"(\"[^\"\n]*\"|'[^'\n]*'|[\w.\-+]+)[ \t]*,?[ \t]*(?:#.*)?$"
)
_CODE_LINE = re.compile(
    r"^[ \t]*(?:import |from \w|@|#|[)\]}]|['\"]|return |(?:if|for|with|def|class) .*:$|print\("
    r"|\w[\w.]*\s*=[^=]|\w[\w., ]{0,120}=\s|\w+(?:\.\w+)+\(|\w+\($)"
)


@dataclass(frozen=True, slots=True)
class Call:
    """One call `start:end`: the family, what its arguments say, rows of its own, and the fact that it gives itself."""

    start: int
    end: int
    name: str
    family: Family
    entries: tuple[Entry, ...]
    rows: Mapping[str, Row]
    says: str | None


@cache
def _names() -> re.Pattern[str]:
    names = sorted({name for family in families().values() for name in family.calls}, key=len, reverse=True)
    return re.compile(rf"(?<![\w.])(?:\w{{1,20}}\.)?(?P<name>{'|'.join(map(re.escape, names))})\s?\(")


def read_calls(text: str) -> list[Call]:
    """Every known call of the message, in order."""
    calls: list[Call] = []
    assigned: dict[str, Any] | None = None
    for match in _names().finditer(text):
        if len(calls) >= _MOST_CALLS:
            break
        if assigned is None:
            assigned = {m[1]: _literal(m[2]) for m in _ASSIGNED.finditer(text) if not m[2].isidentifier()}
        end, closed = _closing(text, match.end())
        family = next(f for f in families().values() if match["name"] in f.calls)
        own = dict(family.calls[match["name"]])
        says = own.pop("says", None)
        first = own.pop("first", None)
        rows = {key: row(spec) for key, spec in own.items()}
        if first:
            rows["first"] = row(first)
        inside = text[match.end() : end - 1 if closed else end]
        entries = tuple(_arguments(inside, match.end(), assigned, bool(first)))
        calls.append(Call(match.start(), end, match["name"], family, entries, rows, says))
    return calls


def read_assignments(text: str) -> list[Entry]:
    """Lines of `key = value`: arguments pasted without their call."""
    return [Entry(m[1], _literal(m[2]), m.start(1), m.end(2)) for m in _ASSIGNED.finditer(text)]


def code_range(text: str, start: int, end: int) -> tuple[int, int]:
    """`start:end` grown to whole lines of code around it."""
    start = text.rfind("\n", 0, start) + 1
    newline = text.find("\n", end)
    end = len(text) if newline < 0 else newline
    for _ in range(60):
        before = text.rfind("\n", 0, max(0, start - 1)) + 1
        line = text[before : max(0, start - 1)]
        if start == 0 or not (_CODE_LINE.match(line) or not line.strip()):
            break
        start = before
    for _ in range(60):
        newline = text.find("\n", end + 1)
        line = text[end + 1 : len(text) if newline < 0 else newline]
        if end >= len(text) or not (_CODE_LINE.match(line) or not line.strip()):
            break
        end = len(text) if newline < 0 else newline
    return start, end


def _closing(text: str, at: int) -> tuple[int, bool]:
    """(end of the call whose arguments begin at `at`, whether it closes)."""
    depth, quote = 1, ""
    limit = min(len(text), at + _LONGEST_CALL)
    for i in range(at, limit):
        c = text[i]
        if quote:
            quote = "" if c in (quote, "\n") else quote
        elif c in "\"'":
            quote = c
        elif c in "([{":
            depth += 1
            if depth > _DEEPEST:
                return i, False
        elif c in ")]}":
            depth -= 1
            if depth == 0:
                return i + 1, True
    return limit, False


def _arguments(inside: str, offset: int, assigned: Mapping[str, Any], takes_first: bool) -> Iterator[Entry]:
    try:
        call = ast.parse(f"f({inside}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        for m in _KEYWORD.finditer(inside):
            yield Entry(m[1], _known(_literal(m[2]), assigned), offset + m.start(1), offset + m.end())
        return
    if not isinstance(call, ast.Call):
        return
    if takes_first and call.args:
        value = _value(call.args[0], assigned)
        if isinstance(value, str):
            yield Entry("first", value, *_place(inside, offset, value))
    for keyword in call.keywords:
        if keyword.arg is not None:
            value = _value(keyword.value, assigned)
            for key, inner in _nested(keyword.arg, value):
                yield Entry(key, inner, *_place(inside, offset, keyword.arg))


def _nested(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A dictionary given as an argument is a section."""
    if not isinstance(value, dict):
        yield key, value
        return
    for inner, item in value.items():
        if not isinstance(item, dict):
            yield f"{key}.{inner}", item


def _place(inside: str, offset: int, word: str) -> tuple[int, int]:
    at = max(0, inside.find(word))
    line = inside.find("\n", at)
    end = min(len(inside) if line < 0 else line, at + 120)
    return offset + at, offset + end


def _value(node: ast.expr, assigned: Mapping[str, Any]) -> Any:
    """The literal behind an argument; a dotted name (torch.bfloat16) is its text; None for what has to be run."""
    if isinstance(node, ast.Name):
        return assigned.get(node.id)
    if isinstance(node, ast.Attribute):
        return node.attr
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text


def _known(value: Any, assigned: Mapping[str, Any]) -> Any:
    return assigned.get(value, value) if isinstance(value, str) else value
