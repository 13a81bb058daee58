"""A message with a config, command or out-of-memory message in it -> `ConfigRead`. Linear in the text, never raises.

Commands beat documents, later values earlier ones, and both beat what a memory message says. Nothing is run and no file
is opened: a config that a command only names is a word, of which its name may say something (ds_zero3_offload.json).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from bot.questions.configs.commands import Command, read_commands, read_environment, read_list, shell_lines
from bot.questions.configs.config_read import ConfigRead, Entry, Fact
from bot.questions.configs.documents import Document, read_documents
from bot.questions.configs.gathered import Gathered
from bot.questions.configs.memory_errors import line_range, read_memory_errors
from bot.questions.configs.python_calls import Call, code_range, read_assignments, read_calls
from bot.questions.configs.settled import settled
from bot.questions.configs.tables import families, likeliest, plain_key
from bot.questions.configs.unwrap import MAX_CHARS, unwrap
from bot.questions.parsed import Problem

_CHEAP = re.compile(
    r"(?<![\w\-])--?[A-Za-z]|\w\s?:\s|[\"']\s?:|\w\(|\w=|llocat|KV cache|out of memory"
    r"|ollama |vllm |llama-|tune |axolotl |[”&;]\s?:|&quot;|(?<!\S)[—–][A-Za-z]|^[ \t]*FROM ",
    re.MULTILINE,
)
_EMPTY_FENCE = re.compile(r"```\w{0,12}[\s)\\]*```|```\w{0,12}[ \t]*(?=\n|$)|^[ \t]*[$>][ \t]*$|``?", re.MULTILINE)


def read_config(text: str, catalogue: Any) -> ConfigRead | None:
    """What the configs, commands and memory messages in `text` say; None where there are none.

    `catalogue` finds models (`find_model`, `model_ids`) and knows the cards (`accelerator_rows`).
    """
    if not _CHEAP.search(text):
        return None
    shown = unwrap(text)
    gathered = Gathered()
    if len(text) > MAX_CHARS:
        gathered.problems.append(Problem("config_truncated", None, {"max_kb": MAX_CHARS // 1000}))
    taken: list[tuple[int, int]] = []
    errors = read_memory_errors(shown)
    left = _without(shown, [(e.start, e.end) for e in errors])
    taken += [line_range(shown, e) for e in errors]
    calls = read_calls(left)
    ranges = [code_range(left, c.start, c.end) for c in calls]
    taken += ranges
    left = _without(left, ranges)
    documents = [d for d in read_documents(left) if _take_document(d, gathered)]
    taken += [(d.start, d.end) for d in documents]
    left = _without(left, [(d.start, d.end) for d in documents])
    commands = read_commands(left)
    taken += [(c.start, c.end) for c in commands]
    if commands:
        taken += shell_lines(left)
    if not calls and not commands:
        _take_assignments(read_assignments(left), gathered, taken)
    _take_calls(calls, gathered)
    for command in commands:
        _take_command(command, gathered)
    _take_environment(shown, gathered, taken)
    if not gathered.families and not errors:
        return None
    return settled(shown, _rest(shown, taken), catalogue, gathered, errors)


def _without(text: str, ranges: Iterable[tuple[int, int]]) -> str:
    for start, end in ranges:
        text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
    return text


def _take_document(document: Document, gathered: Gathered) -> bool:
    keys = frozenset(plain_key(e.key) for e in document.entries)
    family = likeliest(keys)
    if command := _contained(document):
        _take_command(command, gathered)
        return True
    if family is None:
        return False
    gathered.families.append(family)
    gathered.trains = gathered.trains or family.task == "training"
    gathered.add(document.entries, family, "document")
    if document.problem:
        gathered.problems.append(document.problem)
    for part in ("deepspeed", "accelerate"):
        inline = [
            Entry(e.key.removeprefix("deepspeed."), e.value, e.start, e.end)
            for e in document.entries
            if e.key.startswith("deepspeed.")
        ]
        gathered.add(inline, families()[part], "document")
    return True


def _contained(document: Document) -> Command | None:
    """The command of a container's description: its `command` and `args` one after the other."""
    listed = [e for e in document.entries if e.key.rpartition(".")[2] in ("command", "args")]
    if not listed:
        return None
    image = next((str(e.value) for e in document.entries if e.key.rpartition(".")[2] == "image"), "")
    parts = [str(p) for e in listed for p in (e.value if isinstance(e.value, list) else str(e.value).split())]
    return read_list(parts[:200], listed[0].start, listed[-1].end, image)


def _take_calls(calls: list[Call], gathered: Gathered) -> None:
    for call in calls:
        place = Fact(True, call.start, call.start + len(call.name))
        gathered.families.append(call.family)
        gathered.add(call.entries, call.family, "python", dict(call.rows))
        if call.says == "loads":
            gathered.loads = gathered.loads or place
        elif call.says in ("use_peft", "gptq"):
            gathered.put(call.says, place, 1)
        elif call.says:
            gathered.frameworks.append((call.says, place))
        quantises = call.name in ("BitsAndBytesConfig", "GPTQConfig")
        if call.family.task == "training" and call.says != "loads" and not quantises:
            gathered.trains = True


def _take_assignments(entries: list[Entry], gathered: Gathered, taken: list[tuple[int, int]]) -> None:
    family = likeliest(frozenset(e.key for e in entries))
    if family is not None:
        gathered.families.append(family)
        gathered.trains = gathered.trains or family.task == "training"
        gathered.add(entries, family, "python")
        taken += [(e.start, e.end) for e in entries]


def _take_command(command: Command, gathered: Gathered) -> None:
    family = command.family
    gathered.families.append(family)
    gathered.trains = gathered.trains or family.task == "training"
    gathered.add(command.launched, families()["accelerate"], "launcher")
    gathered.add(command.entries, family, "command")
    if family.task == "training":
        gathered.add(command.entries, families()["accelerate"], "launcher")
    if re.match(r"trl\s|.*(?:sft|dpo|grpo)\w*\.py$", command.program):
        gathered.frameworks.append(("trl", Fact(True, command.start, command.end)))


def _take_environment(text: str, gathered: Gathered, taken: list[tuple[int, int]]) -> None:
    for family, entry in read_environment(text):
        secondary = family.secondary
        if secondary and not gathered.families:
            continue
        if family.name == "tgi" and family not in gathered.families:
            continue
        gathered.add([entry], family, "environment")
        taken.append((entry.start, entry.end))
        if not secondary and family not in gathered.families:
            gathered.families.append(family)


def _rest(text: str, taken: list[tuple[int, int]]) -> str:
    """The words around what was read; a fence that held nothing else goes too."""
    kept, at = [], 0
    for start, end in sorted(taken):
        if start > at:
            kept.append(text[at:start])
        at = max(at, end)
    kept.append(text[at:])
    rest = "\n".join(part.strip(" \t") for part in kept if part.strip(" \t"))
    return re.sub(r"\s*\n\s*", "\n", _EMPTY_FENCE.sub("\n", rest)).strip()
