"""YAML and JSON in a message: where they lie, and their keys and values. Malformed or cut ones give what can be read.

Loaded by PyYAML's safe loader only, after aliases, deep nesting and length were ruled out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from bot.questions.configs.config_read import Entry
from bot.questions.configs.tables import families, plain_key
from bot.questions.parsed import Problem
from rules.records import dataclass

MAX_DEPTH = 6
_DEEPEST_TEXT = 40
_MOST_ENTRIES = 2000
_TALK = frozenset("gpu gpus card cards hardware vram ram question q note ps goal hardware_available".split())
_HOLDS_COMMANDS = ("image", "command", "args")
_MOST_REPAIRS = 6
_YAML_LINE = re.compile(r"^[ \t]*(?:- )?(?P<key>[A-Za-z_][\w.\-]{0,80})[ \t]*:(?:[ \t]+(?P<value>[^\n]*))?$")
_INSIDE = re.compile(r"^(?:[ \t]+\S|[ \t]*-[ \t]|[ \t]*#|[ \t]*$|---|\.\.\.|[\]}])")
_COMMENT_OR_BLANK = re.compile(r"^[ \t]*(?:#|$)")
_JSON_START = re.compile(r"\{\s*[\"}]")
_JSON_PAIR = re.compile(
    r"\"(?P<key>[\w.\-]{1,80})\"\s*:\s*(?P<value>\"[^\"\n]*\"|-?[\d.eE+\-]+|true|false|null|\{)?|\}"
)
_ALIAS = re.compile(r"(?:^|[\s,\[{:\-])\*[A-Za-z0-9_]|<<\s*:")
_CHAIN = re.compile(r"^[ \t]*(?:[-?:][ \t]+){8}")
_MODELFILE = re.compile(
    r"^[ \t]*(?:(?P<from>FROM)|PARAMETER[ \t]+(?P<key>[\w]{1,40}))[ \t]+(?P<value>\S+)[ \t]*$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Document:
    """One block `start:end` of the message with its entries in order; a problem where it was not read whole."""

    start: int
    end: int
    entries: tuple[Entry, ...]
    problem: Problem | None = None


def read_documents(text: str) -> list[Document]:
    """Every YAML, JSON and Modelfile block of the message."""
    found = list(_json_blocks(text))
    masked = list(text)
    for document in found:
        masked[document.start : document.end] = "\n" * (document.end - document.start)
    found += _yaml_blocks("".join(masked) if found else text)
    return sorted(found, key=lambda d: d.start)


def _known(key: str) -> bool:
    plain = plain_key(key)
    return plain in _HOLDS_COMMANDS or any(
        plain in family.keys or plain in _roots()[family.name] for family in families().values()
    )


_ROOTS: dict[str, frozenset[str]] = {}


def _roots() -> Mapping[str, frozenset[str]]:
    """First parts of each family's dotted keys."""
    if not _ROOTS:
        for family in families().values():
            _ROOTS[family.name] = frozenset(k.partition(".")[0] for k in family.keys if "." in k)
    return _ROOTS


# ---- JSON


def _json_blocks(text: str) -> Iterator[Document]:
    at = 0
    decoder = json.JSONDecoder()
    for _ in range(_MOST_REPAIRS):
        start = _JSON_START.search(text, at)
        if start is None:
            return
        end = _braces_end(text, start.start())
        body = text[start.start() : end]
        try:
            value, _ = decoder.raw_decode(body)
            entries = tuple(_flattened(value, _json_places(body, start.start()), start.start()))
            problem = None
        except (ValueError, RecursionError):
            entries = tuple(_json_pairs(body, start.start()))
            problem = Problem("config_malformed", None, {"line": text.count("\n", 0, end) + 1})
        if any(_known(e.key) for e in entries):
            yield Document(start.start(), end, entries, problem)
        at = end


def _braces_end(text: str, start: int) -> int:
    """End of the object that begins at `start`: its closing brace, or the end of the text where it is cut."""
    depth, quoted, escaped = 0, False, False
    for i in range(start, len(text)):
        c = text[i]
        if quoted:
            if escaped:
                escaped = False
            elif c == "\\":
                escaped = True
            elif c in '"\n':
                quoted = False
        elif c == '"':
            quoted = True
        elif c == "{":
            depth += 1
            if depth > _DEEPEST_TEXT:
                return len(text)
        elif c == "}":
            depth -= 1
            if depth == 0:
                return i + 1
    return len(text)


def _json_pairs(body: str, offset: int) -> Iterator[Entry]:
    """Key and value pairs of an object that does not parse."""
    path: list[str] = []
    for m in _JSON_PAIR.finditer(body):
        if m["key"] is None:
            path = path[:-1]
        elif m["value"] == "{":
            path.append(m["key"])
        elif m["value"] is not None and len(path) <= MAX_DEPTH:
            try:
                value = json.loads(m["value"])
            except ValueError:
                continue
            yield Entry(".".join([*path, m["key"]]), value, offset + m.start(), offset + m.end())


def _json_places(body: str, offset: int) -> dict[str, tuple[int, int]]:
    places: dict[str, tuple[int, int]] = {}
    for m in _JSON_PAIR.finditer(body):
        if m["key"]:
            places.setdefault(m["key"], (offset + m.start(), offset + m.end()))
    return places


# ---- YAML


def _yaml_blocks(text: str) -> Iterator[Document]:
    lines: list[tuple[int, str]] = []
    at = 0
    for line in text.split("\n"):
        lines.append((at, line.rstrip("\r")))
        at += len(line) + 1
    i = 0
    while i < len(lines):
        if _MODELFILE.match(lines[i][1]):
            i, document = _modelfile(lines, i)
            if document:
                yield document
            continue
        match = _YAML_LINE.match(lines[i][1])
        if match is None or not _known(match["key"]):
            i += 1
            continue
        first = i
        i = _block_end(lines, i)
        block = lines[first:i]
        if document := _yaml_document(block):
            yield document


def _block_end(lines: list[tuple[int, str]], i: int) -> int:
    """The line after the block that line `i` opens; comments and blank lines at its end are left out."""
    while i < len(lines):
        line = lines[i][1]
        match = _YAML_LINE.match(line)
        prose = match is not None and (match["key"].lower() in _TALK or (match["value"] or "").count(" ") > 3)
        words = match is not None and prose and not _known(match["key"])
        if (match is None and not _INSIDE.match(line)) or words:
            break
        i += 1
    while _COMMENT_OR_BLANK.match(lines[i - 1][1]):
        i -= 1
    return i


def _yaml_document(lines: list[tuple[int, str]]) -> Document | None:
    import yaml

    start, end = lines[0][0], lines[-1][0] + len(lines[-1][1])
    indent = len(lines[0][1]) - len(lines[0][1].lstrip(" "))
    kept = [(at, _plain_line(line[indent:] if line[:indent].isspace() else line)) for at, line in lines]
    dropped = {i for i, (_, line) in enumerate(kept) if _ALIAS.search(_code(line)) or _CHAIN.match(line)}
    problem = Problem("config_aliases", None, {}) if dropped else None
    shown = ["" if i in dropped else line for i, (_, line) in enumerate(kept)]
    if _too_deep(shown):
        return Document(start, end, tuple(_yaml_lines(kept)), Problem("config_too_deep", None, {}))
    places = _yaml_places(kept)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for _ in range(_MOST_REPAIRS):
        try:
            value = yaml.load("\n".join(shown), Loader=loader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = min(mark.line if mark else len(shown) - 1, len(shown) - 1)
            problem = problem or Problem("config_malformed", None, {"line": line + 1})
            while line > 0 and not shown[line].strip():
                line -= 1
            shown[line] = ""
        except (yaml.YAMLError, ValueError, RecursionError, OverflowError):
            break
        else:
            entries = tuple(_flattened(value, places, start)) if isinstance(value, (dict, list)) else ()
            return Document(start, end, entries, problem) if entries else None
    problem = problem or Problem("config_malformed", None, {"line": 1})
    return Document(start, end, tuple(_yaml_lines(kept)), problem)


def _plain_line(line: str) -> str:
    return line.replace("\t", "    ") if line.lstrip(" ").startswith("\t") else line


def _code(line: str) -> str:
    return line.partition(" #")[0] if '"' not in line and "'" not in line else re.sub(r"(['\"]).*?\1", "", line)


def _too_deep(lines: list[str]) -> bool:
    depth = most = 0
    for line in lines:
        for c in line:
            if c in "[{":
                depth += 1
                most = max(most, depth)
            elif c in "]}":
                depth = max(0, depth - 1)
    deepest = 0
    indents: list[int] = []
    for line in lines:
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip(" "))
        while indents and indents[-1] >= indent:
            indents.pop()
        indents.append(indent)
        deepest = max(deepest, len(indents))
    return most > _DEEPEST_TEXT or deepest > _DEEPEST_TEXT


def _yaml_lines(lines: list[tuple[int, str]]) -> Iterator[Entry]:
    """Plain `key: value` lines of a block that does not load; sections by indentation."""
    path: list[tuple[int, str]] = []
    for at, line in lines[:_MOST_ENTRIES]:
        match = _YAML_LINE.match(line)
        if match is None:
            continue
        indent = len(line) - len(line.lstrip(" "))
        while path and path[-1][0] >= indent:
            path.pop()
        value = (match["value"] or "").partition(" #")[0].strip()
        if not value:
            path.append((indent, match["key"]))
        elif len(path) <= MAX_DEPTH and not value.startswith(("[", "{", "&", "*")):
            key = ".".join([*(k for _, k in path), match["key"]])
            yield Entry(key, value.strip("'\""), at, at + len(line))


def _yaml_places(lines: list[tuple[int, str]]) -> dict[str, tuple[int, int]]:
    places: dict[str, tuple[int, int]] = {}
    for at, line in lines:
        if match := _YAML_LINE.match(line):
            places[match["key"]] = (at + match.start("key"), at + len(line.rstrip()))
    return places


def _flattened(
    value: Any, places: Mapping[str, tuple[int, int]], start: int, path: str = "", depth: int = 0
) -> Iterator[Entry]:
    """Entries of a loaded document; a list of plain values is one value, a list of sections is passed through."""
    if depth > MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in value[:50]:
            if isinstance(item, (dict, list)):
                yield from _flattened(item, places, start, path, depth + 1)
        return
    for raw, inner in list(value.items())[:_MOST_ENTRIES]:
        key = str(raw)
        whole = f"{path}.{key}" if path else key
        plain = isinstance(inner, list) and not any(isinstance(x, (dict, list)) for x in inner)
        if isinstance(inner, dict) or (isinstance(inner, list) and not plain):
            yield from _flattened(inner, places, start, whole, depth + 1)
        else:
            yield Entry(whole, inner, *places.get(key, (start, start)))


# ---- Ollama's Modelfile


def _modelfile(lines: list[tuple[int, str]], i: int) -> tuple[int, Document | None]:
    entries: list[Entry] = []
    start, end = lines[i][0], lines[i][0]
    quoted = parameters = False
    while i < len(lines):
        at, line = lines[i]
        match = None if quoted else _MODELFILE.match(line)
        if match:
            key = f"parameter.{match['key']}" if match["key"] else "from"
            parameters = parameters or key != "from"
            entries.append(Entry(key, match["value"], at, at + len(line)))
        elif not quoted and line.strip() and not re.match(r"^\s*(?:SYSTEM|TEMPLATE|LICENSE|ADAPTER|MESSAGE|#)", line):
            break
        if line.count('"""') % 2:
            quoted = not quoted
        if line.strip():
            end = at + len(line)
        i += 1
    if not (parameters or any(re.search(r"\.gguf$|:", str(e.value)) for e in entries)):
        return i, None
    return i, Document(start, end, tuple(entries))
