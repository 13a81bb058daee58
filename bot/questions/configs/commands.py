"""Commands in a message: found by their programs, cut into options and values, never run.

A command goes on over lines that end in a backslash or begin with an option. Options that stand without a program
("--max-model-len 8192 --enforce-eager") are read as well where they tell the family.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from itertools import islice

from bot.questions.configs.config_read import Entry
from bot.questions.configs.convert import WITHOUT_VALUE
from bot.questions.configs.tables import LAUNCHER, Family, families, likeliest, plain_key
from rules.records import dataclass

_QUOTED = r"\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'"
_TOKEN = re.compile(rf"{_QUOTED}|(?:[^\s\"'|;&<>`\\]|\\[^\s]|=(?:{_QUOTED}))+|[|;&<>`]")
_NEXT_OPTION = re.compile(r"[ \t]*\r?\n[ \t]*-{1,2}[A-Za-z]")
_OPTION = re.compile(r"^-{1,2}[A-Za-z][\w.\-]*(?:=.*|[?!,;:)]+)?$", re.DOTALL)
_QUOTING = re.compile(r"['\"\\]")
_NUMBER = re.compile(r"^-?\d")
_ENV = re.compile(r"^([A-Z][A-Z0-9_]{2,60})=(.*)$", re.DOTALL)
_ASSIGNED = re.compile(r"(?m)(?<![\w.])(?:export[ \t]+|-e[ \t]+|--env[ \t]+)?([A-Z][A-Z0-9_]{3,60})=([^\s;]{1,200})")
_OVERRIDE = re.compile(r"^~?([A-Za-z_][\w.]*)=(.*)$", re.DOTALL)
_SHELL_LINE = re.compile(r"(?m)^[ \t]*(?:(?:export[ \t]+)?[A-Za-z_]\w{0,40}=\S{1,200}|#(?:!|SBATCH\b)[^\n]*)[ \t]*$")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")
_LAUNCHERS = re.compile(
    r"(?<![\w./\-])(?:torchrun|accelerate\s+launch|deepspeed|docker\s+(?:run|exec)|podman\s+run|srun|nohup|sudo|"
    r"python3?\s+-m\s+torch\.distributed\.(?:run|launch)|python3?|uv\s+run)(?=\s)"
)
_FRAGMENT = re.compile(r"(?<![\w\-])-{1,2}[A-Za-z][\w\-]*")
_PLAIN_WORD = re.compile(r"^[^\W\d_]+[?.!,]?$")
_NAME_LIKE = re.compile(r"[/:\\]|\.gguf$|\d")
_CONFIG_FILE = re.compile(r"\.(?:ya?ml|json|toml|py)$")
_LISTED = re.compile(r"^\w+_\w*$|^all-linear$")  # a further item of a list: q_proj v_proj
_ENDS = frozenset("|;&<>`")
_REDIRECTS = frozenset("|>&")  # what follows on the line is the shell's
_MOST_COMMANDS = 12
_MOST_TRIES = 60
_LONGEST_LINE = 6000


@dataclass(frozen=True, slots=True)
class Command:
    """One command `start:end` with the family of its program and what its options say.

    `launched` are the launcher's own entries (processes, docker's cards), `environment` those of variables.
    """

    start: int
    end: int
    family: Family
    program: str
    entries: tuple[Entry, ...]
    launched: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    start: int
    end: int


@cache
def _programs() -> re.Pattern[str]:
    parts = [f"(?P<{name}>{'|'.join(family.programs)})" for name, family in families().items() if family.programs]
    return re.compile("|".join(rf"(?<![\w\-.]){part}(?![\w\-])" for part in parts))


def read_commands(text: str) -> list[Command]:
    """Every command of the message, in order."""
    found: list[Command] = []
    at = 0
    shell = variables(text)
    for match in islice(_programs().finditer(text), _MOST_TRIES):
        if match.start() < at or len(found) >= _MOST_COMMANDS:
            continue
        if command := _command(text, match, at, shell):
            found.append(command)
            at = command.end
    if not found:
        found += _fragments(text)
    return found


def read_environment(text: str) -> Iterator[tuple[Family, Entry]]:
    """Environment variables that a family reads."""
    for m in _ASSIGNED.finditer(text):
        for family in families().values():
            if m[1] in family.env:
                yield family, Entry(m[1], m[2].strip("'\""), m.start(), m.end())


def shell_lines(text: str) -> Iterator[tuple[int, int]]:
    """Lines of a script that say nothing by themselves: assignments, the first line, a scheduler's settings."""
    for m in _SHELL_LINE.finditer(text):
        yield m.span()


def variables(text: str) -> dict[str, str]:
    """Shell variables that the message sets."""
    found = re.finditer(r"(?m)^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w{0,40})=(\"[^\"\n]*\"|'[^'\n]*'|[^\s;]+)", text)
    return {m[1]: m[2].strip("'\"") for m in found}


def read_list(parts: list[str], start: int, end: int, program: str = "") -> Command | None:
    """A command given as a list of words, as in a container's `args`."""
    text = " ".join(p if " -" in p else shlex.quote(p) for p in parts)  # `sh -c` holds a whole command
    found = read_commands(text if _programs().search(text) or not program else f"{program} {text}")
    if not found:
        return None
    moved = tuple(Entry(e.key, e.value, start, end) for e in found[0].entries)
    return Command(start, end, found[0].family, found[0].program, moved)


def _command(text: str, match: re.Match[str], floor: int, env: dict[str, str]) -> Command | None:
    family = families()[match.lastgroup or ""]
    end_of_line = _line_end(text, match.end())
    start = _start(text, match.start(), floor)
    before = list(_tokens(text, start, match.start(), env))
    after = list(_tokens(text, match.end(), end_of_line, env))
    if family.by_keys:
        keys = frozenset(plain_key(t.text.partition("=")[0]) for t in after if _OPTION.match(t.text))
        told = likeliest(keys, tuple(n for n, f in families().items() if f.task == "training" and not f.secondary))
        if told is None and not match.group(0).startswith("trl"):
            return None
        family = told or family
    at_start = text[:start].rstrip(" \t$>#`").endswith(("\n", ":")) or not text[:start].strip(" \t$>#`\n")
    entries, end = _entries(after, family, match.end(), at_start)
    if not entries and not at_start:
        return None
    if not entries and not family.takes_config:
        return None
    launched, _ = _entries(before, families()[LAUNCHER], start, True, skip_words=True)
    return Command(start, max(end, match.end()), family, match.group(0), tuple(entries), tuple(launched))


def _start(text: str, program: int, floor: int) -> int:
    """Where the command of a program begins: at a launcher or an assignment before it on the same logical line."""
    line = program
    for _ in range(60):
        newline = text.rfind("\n", floor, line)
        if newline < 0:
            line = floor
            break
        if not text[:newline].rstrip(" \t\r").endswith("\\"):
            line = newline + 1
            break
        line = newline
    head = text[line:program]
    launcher = _LAUNCHERS.search(head)
    assigned = re.search(r"(?<![\w.\-])[A-Z][A-Z0-9_]{2,60}=\S", head)
    starts = [m.start() for m in (launcher, assigned) if m]
    return line + min(starts) if starts else program


def _line_end(text: str, at: int) -> int:
    """End of the logical line that holds `at`."""
    limit = min(len(text), at + _LONGEST_LINE)
    while True:
        newline = text.find("\n", at, limit)
        if newline < 0:
            return limit
        glued = text[at:newline].rstrip(" \t\r").endswith(("\\", "^"))
        if not glued and not _NEXT_OPTION.match(text, newline):
            return newline
        at = newline + 1


def _tokens(text: str, start: int, end: int, env: dict[str, str]) -> Iterator[_Token]:
    for m in _TOKEN.finditer(text, start, end):
        raw = m.group(0)
        if raw in _ENDS:
            yield _Token(raw, m.start(), m.end())
            continue
        word = raw if raw.isidentifier() or not _QUOTING.search(raw) else _unquoted(raw)
        yield _Token(_VARIABLE.sub(lambda v: env.get(v[1], v[0]), word), m.start(), m.end())


def _unquoted(raw: str) -> str:
    try:
        return "".join(shlex.split(raw))
    except ValueError:
        return raw.strip("'\"")


def _entries(
    tokens: list[_Token], family: Family, end: int, at_start: bool, skip_words: bool = False
) -> tuple[list[Entry], int]:
    """(entries, end of the last word that belongs to the command)."""
    entries: list[Entry] = []
    words = 0
    i = 0
    while i < len(tokens):
        token = tokens[i]
        if token.text in _REDIRECTS or (token.text.isdigit() and i + 1 < len(tokens) and tokens[i + 1].text == ">"):
            end = tokens[-1].end if entries else end
            break
        if token.text in _ENDS:
            break
        if _OPTION.match(token.text) and not _NUMBER.match(token.text):
            i, entry = _option(tokens, i, family)
            entries.append(entry)
            end = max(end, tokens[i - 1].end)
            continue
        if skip_words:
            i += 1
            continue
        override = _OVERRIDE.match(token.text) if family.overrides else None
        if override:
            entries.append(Entry(override[1], override[2], token.start, token.end))
        elif _ENV.match(token.text):
            pass
        elif words == 0 and (first := _first_word(tokens, i, family, at_start)):
            entries.append(first)
            words += 1
        elif words == 0 and (family.takes_config or family.by_keys) and _CONFIG_FILE.search(token.text):
            words += 1
        else:
            break
        end = token.end
        i += 1
    return entries, end


def _first_word(tokens: list[_Token], i: int, family: Family, at_start: bool) -> Entry | None:
    """The word that stands without an option: a model, or torchtune's recipe."""
    token = tokens[i]
    if family.overrides and not _PLAIN_WORD.match(token.text):
        return Entry("recipe", token.text, token.start, token.end)
    if family.positional is None:
        return None
    following = tokens[i + 1].text if i + 1 < len(tokens) else ""
    alone = not following or following in _ENDS or _OPTION.match(following)
    if re.search(r"[/:]", token.text) or (_NAME_LIKE.search(token.text) and at_start) or (alone and at_start):
        return Entry("model", token.text.rstrip("?,"), token.start, token.end)
    return None


def _option(tokens: list[_Token], i: int, family: Family) -> tuple[int, Entry]:
    """(index after the option at `i` and its value, its entry)."""
    token = tokens[i]
    name, equals, inline = token.text.partition("=")
    key = plain_key(name)
    row = family.keys.get(key)
    if equals:
        return i + 1, Entry(key, inline, token.start, token.end)
    value = tokens[i + 1] if i + 1 < len(tokens) else None
    if value is None or value.text in _ENDS or (_OPTION.match(value.text) and not _NUMBER.match(value.text)):
        return i + 1, Entry(key, True, token.start, token.end)
    if row is not None and row.reads_as in WITHOUT_VALUE:
        if value.text.lower() in ("true", "false", "0", "1", "on", "off", "auto", "enabled", "disabled", "unsloth"):
            return i + 2, Entry(key, value.text, token.start, value.end)
        return i + 1, Entry(key, True, token.start, token.end)
    if row is not None and row.reads_as == "names":
        last = i + 1
        while last + 1 < len(tokens) and _LISTED.search(tokens[last + 1].text):
            last += 1
        if last > i + 1:
            names = " ".join(t.text for t in tokens[i + 1 : last + 1])
            return last + 1, Entry(key, names, token.start, tokens[last].end)
    if row is None and _PLAIN_WORD.match(value.text) and _words_follow(tokens, i + 2):
        return i + 1, Entry(key, True, token.start, token.end)
    return i + 2, Entry(key, value.text, token.start, value.end)


def _words_follow(tokens: list[_Token], i: int) -> bool:
    """Whether prose goes on at `i`: an unknown option then had no value of its own."""
    return i < len(tokens) and not _OPTION.match(tokens[i].text) and tokens[i].text not in _ENDS


def _fragments(text: str) -> Iterator[Command]:
    """Runs of options without a program."""
    said = [(m.start(), plain_key(m.group(0)), m.group(0)) for m in _FRAGMENT.finditer(text)]
    keys = frozenset(key for _, key, _ in said)
    family = likeliest(keys)
    if family is None or len({k for k in keys if k in family.keys}) < family.least:
        return
    at = 0
    for place, key, written in said[:_MOST_TRIES]:
        if place < at or key not in family.keys or (len(written) == 2 and family.least < 2):
            continue
        tokens = list(_tokens(text, place, _line_end(text, place), {}))
        entries, end = _entries(tokens, family, place, False)
        if entries:
            yield Command(place, end, family, "", tuple(entries))
        at = max(end, place + 1)
