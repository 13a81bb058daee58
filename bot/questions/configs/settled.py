"""Gathered facts -> the fields of `ConfigRead`: the leading family, the model, task and framework, what errors say."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from bot.questions.configs import serving, training
from bot.questions.configs.config_read import ConfigRead, Fact, Told
from bot.questions.configs.gathered import SHOWN_VALUE, Gathered
from bot.questions.configs.memory_errors import OutOfMemory, marketed_gb
from bot.questions.configs.names import Named, read_component, read_name, read_recipe_file
from bot.questions.configs.tables import Family
from bot.questions.parsed import Problem, Span

_FIELDS = frozenset(("task", "model", "params_b", "active_params_b", "method", "optimizer", "lora_rank", "context",
                     "batch", "framework", "precision", "weights_format", "gpu_mem_gb"))  # fmt: skip
_SURE = 0.95
_MOST_PROBLEMS = 8


def settled(text: str, rest: str, catalogue: Any, gathered: Gathered, errors: list[OutOfMemory]) -> ConfigRead:
    """What the facts and errors say together; `rest` are the words of `text` that belong to none of them."""
    lead = _lead(gathered)
    for error in errors:
        for name, fact in error.facts.items():
            gathered.extra.setdefault(name, fact)
    _count_cards(gathered)
    named = _model(gathered, catalogue)
    told: list[Told] = []
    inference = lead is not None and (lead.task == "inference" or not gathered.trains)
    if lead is not None:
        told += _task_and_framework(gathered, lead, inference)
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
    return _read(text, rest, gathered, lead, told, bool(errors))


def _lead(gathered: Gathered) -> Family | None:
    """The family that names the tool: one that is not only a launcher's, the most particular first."""
    order = sorted(gathered.families, key=lambda f: (f.secondary, f.task == "inference" and gathered.trains, f.by_keys))
    return order[0] if order else None


def _model(gathered: Gathered, catalogue: Any) -> Named | None:
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
        gathered.problems.append(Problem("config_model_path", None, {"path": str(fact.value)[:SHOWN_VALUE]}))
    return named


def _count_cards(gathered: Gathered) -> None:
    facts = gathered.facts
    if (fact := facts.get("visible")) and (cards := re.findall(r"\d+", str(fact.value))):
        facts["visible_count"] = Fact(len(cards), fact.start, fact.end)
    if fact := facts.get("docker_gpus"):
        said = str(fact.value)
        cards = re.findall(r"\d+", said)
        if cards:
            count = len(cards) if "device" in said or "," in said else int(cards[0][:4])
            facts["docker_count"] = Fact(count, fact.start, fact.end)


def _task_and_framework(gathered: Gathered, lead: Family, inference: bool) -> Iterable[Told]:
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


def _read(text: str, rest: str, gathered: Gathered, lead: Family | None, told: list[Told], failed: bool) -> ConfigRead:
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
    order = [*([lead.name] if lead else []), *names, *(["memory_error"] if failed else [])]
    return ConfigRead(
        families=tuple(dict.fromkeys(order)),
        rest=rest,
        fields=fields,
        extra=extra,
        spans=tuple(sorted(spans, key=lambda s: s.start)),
        problems=_unique(gathered.problems),
    )


def _unique(problems: list[Problem]) -> tuple[Problem, ...]:
    seen: dict[tuple[str, str], Problem] = {}
    for problem in problems:
        seen.setdefault((problem.id, str(problem.params)), problem)
    return tuple(list(seen.values())[:_MOST_PROBLEMS])
