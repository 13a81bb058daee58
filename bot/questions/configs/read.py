"""A message with a config, command or out-of-memory message in it -> `ConfigRead`. Linear in the text, never raises.

Commands beat documents, later values earlier ones, and both beat what a memory message says. Nothing is run and no file
is opened: a config that a command only names is a word, of which its name may say something (ds_zero3_offload.json).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from bot.questions.configs import serving, training
from bot.questions.configs.commands import Command, read_commands, read_environment, read_list, shell_lines
from bot.questions.configs.config_read import ConfigRead, Entry, Fact, Told
from bot.questions.configs.convert import Unread, convert
from bot.questions.configs.documents import Document, read_documents
from bot.questions.configs.memory_errors import OutOfMemory, line_range, marketed_gb, read_memory_errors
from bot.questions.configs.names import Named, read_component, read_name, read_recipe_file
from bot.questions.configs.python_calls import Call, code_range, read_assignments, read_calls
from bot.questions.configs.tables import NAMES, Family, Row, families, likeliest, plain_key
from bot.questions.configs.unwrap import MAX_CHARS, unwrap
from bot.questions.parsed import Problem, Span

_CHEAP = re.compile(
    r"(?<![\w\-])--?[A-Za-z]|\w\s?:\s|[\"']\s?:|\w\(|\w=|llocat|KV cache|out of memory"
    r"|ollama |vllm |llama-|tune |axolotl |[”&;]\s?:|&quot;|(?<!\S)[—–][A-Za-z]|^[ \t]*FROM ",
    re.MULTILINE,
)
_NAMES_OF_MODELS = ("model", "gguf", "tag")
_FIELDS = frozenset(("task", "model", "params_b", "active_params_b", "method", "optimizer", "lora_rank", "context",
                     "batch", "framework", "precision", "weights_format", "gpu_mem_gb"))  # fmt: skip
_RANKS = {"memory_error": 0, "document": 1, "python": 1, "environment": 2, "launcher": 2, "command": 3}
_EMPTY_FENCE = re.compile(r"```\w{0,12}[\s)\\]*```|```\w{0,12}[ \t]*(?=\n|$)|^[ \t]*[$>][ \t]*$|``?", re.MULTILINE)
_SURE = 0.95
_SHOWN_VALUE = 40


@dataclass
class _Gathered:
    """Facts of every part so far, with the families that gave them."""

    facts: dict[str, Fact] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    families: list[Family] = field(default_factory=list)
    frameworks: list[tuple[str, Fact]] = field(default_factory=list)
    extra: dict[str, Fact] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    reads_name_as: str = "model"
    trains: bool = False
    loads: Fact | None = None

    def add(self, entries: Iterable[Entry], family: Family, kind: str, own: dict[str, Row] | None = None) -> None:
        rank = _RANKS[kind]
        for entry in entries:
            key = entry.key if own and entry.key in own else plain_key(entry.key)
            row = (own or {}).get(key) or family.keys.get(key)
            if kind == "environment":
                row = family.env.get(entry.key)
            if row is None or row.fact == "ignored":
                continue
            try:
                value = convert(entry.value, row.reads_as)
            except Unread as error:
                shown = str(error)[:_SHOWN_VALUE]
                self.problems.append(Problem("config_value_unread", None, {"key": key, "value": shown}))
                continue
            if value is None or (row.reads_as in _NAMES_OF_MODELS and entry.value is True):
                continue
            self.put(row.fact, Fact(value, entry.start, entry.end), rank)
            if row.fact == "model" and row.reads_as in _NAMES_OF_MODELS:
                self.reads_name_as = row.reads_as

    def put(self, name: str, fact: Fact, rank: int) -> None:
        if rank >= self.ranks.get(name, -1):
            self.facts[name], self.ranks[name] = fact, rank


def read_config(text: str, catalogue: Any) -> ConfigRead | None:
    """What the configs, commands and memory messages in `text` say; None where there are none.

    `catalogue` finds models (`find_model`, `model_ids`) and knows the cards (`accelerator_rows`).
    """
    if not _CHEAP.search(text):
        return None
    shown = unwrap(text)
    gathered = _Gathered()
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
    return _settled(shown, catalogue, gathered, errors, taken)


def _without(text: str, ranges: Iterable[tuple[int, int]]) -> str:
    for start, end in ranges:
        text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
    return text


def _take_document(document: Document, gathered: _Gathered) -> bool:
    keys = frozenset(plain_key(e.key) for e in document.entries)
    family = likeliest(keys, NAMES)
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


def _take_calls(calls: list[Call], gathered: _Gathered) -> None:
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


def _take_assignments(entries: list[Entry], gathered: _Gathered, taken: list[tuple[int, int]]) -> None:
    family = likeliest(frozenset(e.key for e in entries), NAMES)
    if family is not None:
        gathered.families.append(family)
        gathered.trains = gathered.trains or family.task == "training"
        gathered.add(entries, family, "python")
        taken += [(e.start, e.end) for e in entries]


def _take_command(command: Command, gathered: _Gathered) -> None:
    family = command.family
    gathered.families.append(family)
    gathered.trains = gathered.trains or family.task == "training"
    gathered.add(command.launched, families()["accelerate"], "launcher")
    gathered.add(command.entries, family, "command")
    if family.task == "training":
        gathered.add(command.entries, families()["accelerate"], "launcher")
    if re.match(r"trl\s|.*(?:sft|dpo|grpo)\w*\.py$", command.program):
        gathered.frameworks.append(("trl", Fact(True, command.start, command.end)))


def _take_environment(text: str, gathered: _Gathered, taken: list[tuple[int, int]]) -> None:
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


def _settled(
    text: str, catalogue: Any, gathered: _Gathered, errors: list[OutOfMemory], taken: list[tuple[int, int]]
) -> ConfigRead:
    lead = _lead(gathered)
    for error in errors:
        for name, fact in error.facts.items():
            gathered.extra.setdefault(name, fact)
    _count_cards(gathered)
    named = _model(gathered, catalogue)
    told: list[Told] = []
    inference = lead is not None and (lead.task == "inference" or not gathered.trains)
    if lead is not None:
        told += _task_and_framework(gathered, lead, errors, inference)
    elif errors:
        told += _error_framework(errors)
    if named is not None:
        fact = gathered.facts["model"]
        told += [Told(name, value, fact) for name, value in named.fields.items()]
        if named.domain:
            told.append(Told("domain", named.domain, fact))
    facts = gathered.facts
    if lead is not None and inference:
        told += serving.settle(facts, named, lead.framework)
    elif lead is not None:
        without = lead.without_adapter
        if lead.needs_model_for_method and named is None:
            without = None
        told += training.settle(facts, named, without)
    told += _error_facts(gathered.extra, catalogue)
    if any(item.field == "batch" and item.value == 0 for item in told):
        gathered.problems.append(Problem("batch_not_positive", "batch", {"batch": 0}))
    return _read(text, gathered, lead, errors, told, taken)


def _lead(gathered: _Gathered) -> Family | None:
    """The family that names the tool: one that is not only a launcher's, the most particular first."""
    order = sorted(gathered.families, key=lambda f: (f.secondary, f.task == "inference" and gathered.trains, f.by_keys))
    return order[0] if order else None


def _model(gathered: _Gathered, catalogue: Any) -> Named | None:
    """The model, and the facts that its name gives."""
    facts = gathered.facts
    named: Named | None = None
    for name, reader, source in (
        ("component", read_component, "component_method"),
        ("recipe_config", read_recipe_file, "file_method"),
    ):
        if fact := facts.get(name):
            found, method = reader(str(fact.value), catalogue)
            if method:
                facts.setdefault(source, Fact(method, fact.start, fact.end))
            if found and named is None:
                named = found
                facts["model"] = fact
    if (fact := facts.get("model")) and named is None:
        named = read_name(str(fact.value), gathered.reads_name_as, catalogue)
    if (fact := facts.get("file")) is not None:
        file = read_name(str(fact.value), "gguf", catalogue)
        if file and file.weights:
            facts["file_weights"] = Fact(file.weights, fact.start, fact.end)
        if file and named is None:
            named, facts["model"] = file, fact
    if named is None and (path := facts.get("model_path")):
        named = read_name(re.sub(r"/original/.*|/tokenizer\.model$", "", str(path.value)), "model", catalogue)
        if named:
            facts["model"] = path
    if named is None and (fact := facts.get("model")):
        gathered.problems.append(Problem("config_model_path", None, {"path": str(fact.value)[:_SHOWN_VALUE]}))
    return named


def _count_cards(gathered: _Gathered) -> None:
    facts = gathered.facts
    if (fact := facts.get("visible")) and (cards := re.findall(r"\d+", str(fact.value))):
        facts["visible_count"] = Fact(len(cards), fact.start, fact.end)
    if fact := facts.get("docker_gpus"):
        said = str(fact.value)
        cards = re.findall(r"\d+", said)
        if cards:
            count = len(cards) if "device" in said or "," in said else int(cards[0][:4])
            facts["docker_count"] = Fact(count, fact.start, fact.end)


def _task_and_framework(
    gathered: _Gathered, lead: Family, errors: list[OutOfMemory], inference: bool
) -> Iterable[Told]:
    facts = gathered.facts
    place = next(iter(facts.values()), None) or Fact(True, 0, 0)
    stage = facts.get("stage")
    yield Told("task", "inference" if inference else "fine_tuning", stage or place)
    framework, source = lead.framework, place
    if lead.by_keys and not inference and gathered.frameworks:
        framework, source = gathered.frameworks[-1]
    if lead.framework == "transformers" and "trl" in facts and framework == "transformers":
        framework, source = "trl", facts["trl"]
    if any(name == "unsloth" for name, _ in gathered.frameworks) and not inference:
        framework = "unsloth"
    if (fact := facts.get("unsloth")) and fact.value:
        framework, source = "unsloth", fact
    yield Told("framework", framework, source)


def _error_framework(errors: list[OutOfMemory]) -> Iterable[Told]:
    for error in errors:
        if error.framework:
            place = Fact(True, error.start, error.end)
            yield Told("framework", error.framework, place)
            if error.task:
                yield Told("task", error.task, place)
            return


def _error_facts(extra: dict[str, Fact], catalogue: Any) -> Iterable[Told]:
    for name, fact in extra.items():
        if name == "device_memory_gib":
            sizes = {float(row["memory_gb_marketed"] or 0) for row in catalogue.accelerator_rows}
            size = marketed_gb(fact.value, sizes)
            yield Told("gpu_mem_gb", int(size) if size == int(size) else size, fact)
        yield Told(name, fact.value, fact)


def _read(
    text: str,
    gathered: _Gathered,
    lead: Family | None,
    errors: list[OutOfMemory],
    told: list[Told],
    taken: list[tuple[int, int]],
) -> ConfigRead:
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    spans: list[Span] = []
    for item in told:
        target = fields if item.field in _FIELDS else extra
        if item.field in target:
            continue
        target[item.field] = list(item.value) if isinstance(item.value, tuple) else item.value
        start, end = item.fact.start, item.fact.end
        spans.append(Span(item.field, start, end, text[start:end], _SURE, target[item.field]))
    names = [f.name for f in gathered.families if f is not lead]
    order = [*([lead.name] if lead else []), *names, *(["memory_error"] if errors else [])]
    return ConfigRead(
        families=tuple(dict.fromkeys(order)),
        rest=_rest(text, taken),
        fields=fields,
        extra=extra,
        spans=tuple(sorted(spans, key=lambda s: s.start)),
        problems=_unique(gathered.problems),
    )


def _unique(problems: list[Problem]) -> tuple[Problem, ...]:
    seen: dict[tuple[str, str], Problem] = {}
    for problem in problems:
        seen.setdefault((problem.id, str(problem.params)), problem)
    return tuple(list(seen.values())[:8])


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
