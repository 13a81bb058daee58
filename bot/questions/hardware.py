"""Cards in a question: names with counts and memory variants, or just their memory; and all hardware together."""

from __future__ import annotations

import re

from bot.questions import numbers
from bot.questions.devices import DeviceWords
from bot.questions.hosts import (
    GB,
    FindInstance,
    Mention,
    memory_before,
    place_instances,
    read_cpus,
    read_macs,
    read_ram,
    spot_instances,
)
from bot.questions.lexicon import EDGE_AFTER, EDGE_BEFORE, Alternatives, Needing, cue, phrases, remembered, word
from bot.questions.reader import Reader

_MEMORY_AFTER = re.compile(
    rf"[\s\-(]{{0,2}}(?:(?:de|of|with|con|w/)\s)?(?P<gb>\d{{1,3}})(?:\s?(?P<unit>{GB})(?![a-z0-9])|(?![\w%/]|[.,]\d)"
    r"(?!\s?(?:x|h|hrs?|hours?|horas?|users?|usuarios|days?|dias|epochs?|steps|tok\w*|ctx|gpus?|cards?|reqs?)(?![a-z])))\)?"
)
_COUNT_AFTER = re.compile(rf"\s?\(?[x*]\s?(\d{{1,4}})\)?{EDGE_AFTER}")
MAX_COUNT = 100_000
MAX_CARD_GB = 512


@remembered
def _count_before() -> re.Pattern[str]:
    between = r"(?:gpus?|cards?|graficas?|tarjetas?|units?|unidades|nvidia|modded|used|desktop|new|free|paid|张|块)"
    return re.compile(
        rf"{EDGE_BEFORE}(?P<count>{numbers.count_source()})(?:\s?[x*]\s?|\s)(?:of\s|de\s)?"
        rf"(?:(?P<gb>\d{{1,3}})\s?{GB}[\s\-](?:vram\s)?)?(?:{between}\s?(?:of\s|de\s)?){{0,2}}$"
    )


@remembered
def _nodes_before() -> re.Pattern[str]:
    return re.compile(rf"{EDGE_BEFORE}(\d{{1,5}})\s?(?:x\s?)?{word('nodes')}\s(?:of|with|de|con|x|each)\s$")


@remembered
def _counts_something() -> re.Pattern[str]:
    return re.compile(rf"\s?(?:{word('tokens')}|{word('samples')}|{word('steps')})(?![a-z])")


@remembered
def _gpus_after() -> re.Pattern[str]:
    return re.compile(rf"\s(\d{{1,3}})\s{word('gpu')}{EDGE_AFTER}")


@remembered
def _card_memory() -> Needing:
    return Needing(
        rf"{EDGE_BEFORE}(?:(?P<count>{numbers.count_source()})(?:\s?x\s?|\s)(?:{word('gpu')}\s?(?:of|de|with|con)?\s)?)?"
        rf"(?P<gb>\d{{1,4}})\s?{GB}(?![a-z0-9])"
        rf"(?P<word>\s?(?:of\s|de\s)?(?:{word('vram')}){EDGE_AFTER})?",
        ("g",),
    )


_LAPTOP_CARDS = re.compile(r"RTX [345]0[5-9]0(?: Ti)?$")


def read_hardware(reader: Reader, words: DeviceWords, find_instance: FindInstance) -> None:
    """Fills `hardware`, `gpu_mem_gb`, `cpu_only` and, as extras, `ram_gb`, `gpu_count`."""
    read_ram(reader)
    found: list[Mention] = []
    spotted = spot_instances(reader, find_instance)
    read_macs(reader, found)
    _read_cards(reader, words, found)
    place_instances(reader, spotted, found)
    no_gpu = reader.search(cue("words", "cpu_only"))
    if no_gpu:
        reader.give("cpu_only", True, no_gpu)
    cpus = read_cpus(reader)
    if not found and cpus:
        found = cpus
        reader.fields["cpu_only"] = True
    if found:
        _give(reader, found)
        if reader.has(_cpu_against()):
            reader.name("hardware", hardware=[{"name": "CPU", "count": 1}])
    _read_card_memory(reader)
    _read_count_alone(reader)


@remembered
def _cpu_against() -> re.Pattern[str]:
    """A device set against the CPU: "T4 vs CPU"."""
    return re.compile(rf"{EDGE_BEFORE}(?:{word('versus')}\s(?:[a-z]{{1,4}}\s)?cpu|cpu\s{word('versus')}){EDGE_AFTER}")


def _give(reader: Reader, found: list[Mention]) -> None:
    listed: dict[str, Mention] = {}
    for mention in sorted(found, key=lambda f: f.start):
        listed.setdefault(mention.name, mention)
    reader.fields["hardware"] = [{"name": m.name, "count": m.count} for m in listed.values()]
    for mention in sorted(found, key=lambda f: f.start):
        reader.name("hardware", hardware=[{"name": mention.name, "count": mention.count}])
    if len(listed) == 1:
        with_memory = next((m for m in found if m.memory_gb is not None), None)
        if with_memory is not None:
            reader.offer("gpu_mem_gb", with_memory.memory_gb, with_memory.start, with_memory.end)
    for mention in listed.values():
        if not 0 < mention.count <= MAX_COUNT:
            reader.problem("device_count_impossible", "hardware", name=mention.name, count=mention.count)


def _read_cards(reader: Reader, words: DeviceWords, found: list[Mention]) -> None:
    for m in list(reader.matches(words.pattern)):
        if m.group("name").isdigit() and _counts_something().match(reader.left, m.end()):
            continue
        start, end, count, memory = m.start(), m.end(), None, None
        device = words.device(m)
        after = _MEMORY_AFTER.match(reader.left, end)
        if after and (after.group("unit") or int(after.group("gb")) in device.memories):
            memory, end = int(after.group("gb")), after.end()
        if (times := _COUNT_AFTER.match(reader.left, end)) or (times := _gpus_after().match(reader.left, end)):
            count, end = int(times.group(1)), times.end()
        head = reader.left[max(0, start - 60) : start]
        offset = start - len(head)
        if before := _count_before().search(head):
            if count is None:
                count = numbers.count(before.group("count"))
            if before.group("gb") and memory is None:
                memory = int(before.group("gb"))
            start = offset + before.start()
        elif (before := memory_before().search(head)) and memory is None:
            memory = int(before.group("gb"))
            start = offset + before.start()
        head = reader.left[max(0, start - 30) : start]
        if nodes := _nodes_before().search(head):
            count = (count or 1) * int(nodes.group(1))
            start -= len(head) - nodes.start()
        memory = memory or None  # "0 GB" says nothing of a card
        name = device.name if memory is None else device.named_with(memory)
        if _LAPTOP_CARDS.fullmatch(device.name) and reader.has(cue("words", "laptop")):
            name = f"{device.name} Laptop"
        stays = None if device.folded else memory
        found.append(Mention(start, end, name, 1 if count is None else count, stays, count is not None))
        reader.claim_range(start, end, "hardware", 0.95 if count is not None else 0.85)


_UNIFIED_REACH = 4


@remembered
def _unified() -> Alternatives:
    return cue("words", "unified")


@remembered
def _needs() -> re.Pattern[str]:
    return re.compile(rf"{EDGE_BEFORE}{word('needs')}\s(?:[a-z]{{2,6}}\s)?$")


def _read_card_memory(reader: Reader) -> None:
    for m in list(reader.matches(_card_memory())):
        value = int(m.group("gb"))
        count = m.group("count")
        if value == 0 or value > MAX_CARD_GB:
            continue
        if reader.fields.get("cpu_only"):
            reader.give_extra("ram_gb", value, m, 0.6)
            continue
        unified = m.group("word") and _unified().search(reader.whole[m.start() : m.end() + _UNIFIED_REACH])
        if unified and len(reader.fields.get("hardware", ())) == 1:
            reader.give("gpu_mem_gb", value, m, 0.8)
        if "hardware" in reader.fields or (not m.group("word") and _needs().search(reader.left[: m.start()][-24:])):
            continue
        reader.give("gpu_mem_gb", value, m, 0.8)
        if count is not None and numbers.count(count) > 1:
            reader.offer_extra("gpu_count", numbers.count(count), *m.span())


@remembered
def _cards_alone() -> Needing:
    return Needing(rf"{EDGE_BEFORE}(?P<count>[1-9]\d{{0,3}})\s?{word('gpu')}{EDGE_AFTER}", phrases("words", "gpu"))


def _read_count_alone(reader: Reader) -> None:
    """A number of cards of no named kind ("on 8 GPUs")."""
    if "hardware" in reader.fields or "gpu_mem_gb" in reader.fields or reader.fields.get("cpu_only"):
        return
    for m in list(reader.matches(_cards_alone())):
        reader.offer_extra("gpu_count", int(m.group("count")), *m.span())
