"""Hardware in a question: cards with counts and memory variants, CPUs, Macs, machines that stand for cards."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from bot.questions import numbers
from bot.questions.devices import DeviceWords
from bot.questions.lexicon import EDGE_AFTER, EDGE_BEFORE, cue, source, table, word
from bot.questions.reader import Reader
from rules.catalog.accelerators import Accelerator
from rules.catalog.errors import UnknownName

_GB = r"(?:gigabytes|gigas|gigs|gib|gb|g)"
_MEMORY_AFTER = re.compile(
    rf"[\s\-(]{{0,2}}(?:(?:de|of|with|con|w/)\s)?(?P<gb>\d{{1,3}})(?:\s?(?P<unit>{_GB})(?![a-z0-9])|(?![\w%/]|[.,]\d)"
    r"(?!\s?(?:x|h|hrs?|hours?|horas?|users?|usuarios|days?|dias|epochs?|steps|tok\w*|ctx|gpus?|cards?|reqs?)(?![a-z])))\)?"
)
_COUNT_AFTER = re.compile(rf"\s?\(?x\s?(\d{{1,4}})\)?{EDGE_AFTER}")
MAX_COUNT = 100_000


@cache
def _count_before() -> re.Pattern[str]:
    between = r"(?:gpus?|cards?|graficas?|tarjetas?|units?|unidades|nvidia|modded|used|desktop|new|free|paid|张|块)"
    return re.compile(
        rf"{EDGE_BEFORE}(?P<count>{numbers.count_source()})(?:\s?[x*]\s?|\s)(?:of\s|de\s)?"
        rf"(?:(?P<gb>\d{{1,3}})\s?{_GB}[\s\-](?:vram\s)?)?(?:{between}\s?(?:of\s|de\s)?){{0,2}}$"
    )


@cache
def _memory_before() -> re.Pattern[str]:
    return re.compile(rf"{EDGE_BEFORE}(?P<gb>\d{{1,3}})\s?{_GB}[\s\-](?:vram\s)?(?:nvidia\s)?$")


@cache
def _nodes_before() -> re.Pattern[str]:
    return re.compile(rf"{EDGE_BEFORE}(\d{{1,5}})\s?(?:x\s?)?{word('nodes')}\s(?:of|with|de|con|x|each)\s$")


@cache
def _gpus_after() -> re.Pattern[str]:
    return re.compile(rf"\s(\d{{1,3}})\s{word('gpu')}{EDGE_AFTER}")


@cache
def _card_memory() -> re.Pattern[str]:
    return re.compile(
        rf"{EDGE_BEFORE}(?:(?P<count>{numbers.count_source()})(?:\s?x\s?|\s)(?:{word('gpu')}\s?(?:of|de|with|con)?\s)?)?"
        rf"(?P<gb>\d{{1,4}})\s?{_GB}(?![a-z0-9])"
        rf"(?P<word>\s?(?:of\s|de\s)?(?:{word('vram')}){EDGE_AFTER})?"
    )


@cache
def _ram() -> re.Pattern[str]:
    ram = word("ram")
    return re.compile(
        rf"{EDGE_BEFORE}(?P<gb>\d{{1,5}})\s?(?P<unit>tb|t|{_GB})\s?(?:of\s|de\s)?(?:{ram}){EDGE_AFTER}"
        rf"|{EDGE_BEFORE}(?:{ram})\s?[:=]?\s?(?P<gb2>\d{{1,5}})\s?(?P<unit2>tb|{_GB})(?![a-z0-9])"
    )


_CPU = re.compile(
    EDGE_BEFORE
    + r"(?:(?P<count>\d{1,2}|dual|two)\s?x?\s)?(?:(?:intel|amd)\s)?(?:"
    + r"(?P<xeon>xeon)[\s\-]?(?P<grade>gold|platinum|silver|bronze|max|e5|e7|e3|w)?[\s\-]?(?P<xn>w?\d?-?\d{4}[a-z+]{0,2}(?:\sv\d)?)?"
    + r"|(?P<epyc>epyc)[\s\-]?(?P<en>\d{4}[a-z]{0,2})?"
    + r"|(?P<core>(?:core\s)?i[3579])[\s\-](?P<cn>\d{4,5}[a-z]{0,2})"
    + r"|(?P<ultra>core ultra [579]) (?P<un>\d{3}[a-z]{0,2})"
    + r"|(?P<ryzen>ryzen(?:\s[3579])?)\s(?P<rn>\d{4}[a-z0-9]{0,3})"
    + r"|(?P<thread>threadripper)(?:\s(?P<tpro>pro))?(?:\s(?P<tn>\d{4}[a-z]{0,2}))?"
    + r"|(?P<bare>[3579][5679]\d0x3?d?)"
    + r"|(?P<arm>graviton\s?\d|altra max|ampereone)"
    + r")"
    + EDGE_AFTER
)
_MAC = re.compile(
    EDGE_BEFORE
    + r"(?P<box>mac\s?studio|mac\s?mini|mac\s?pro|mac\s?book(?:\s(?:pro|air))?|mbp|imac|mac|apple)?\s?(?:with\s(?:an?\s)?|con\s(?:un\s)?|\()?"
    + r"m(?P<gen>[1-9])(?:[\s\-]?(?P<kind>pro|max|ultra))?"
    + EDGE_AFTER
    + r"(?:\)?[\s\-,(]{0,2}(?:with\s|de\s|con\s)?(?P<gb>\d{1,3})(?:\s?gb|\s?g|\s?gigs)?(?![\w.]))?"
)
_MAC_BOX = re.compile(
    EDGE_BEFORE + r"(?P<box>mac\s?studio|mac\s?mini|mac\s?pro|mac\s?book(?:\s(?:pro|air))?|mbp|imac|mac)" + EDGE_AFTER
    + r"(?:\s(?:with\s|de\s|con\s)?(?P<gb>\d{1,3})\s?g(?:b|igs)?(?![\w]))?"
)  # fmt: skip
_BOX_NAMES = {"macstudio": "Mac Studio", "macmini": "Mac mini", "macpro": "Mac Pro", "macbook": "MacBook",
              "macbookpro": "MacBook Pro", "macbookair": "MacBook Air", "mbp": "MacBook Pro", "imac": "iMac",
              "mac": "Mac", "apple": "Apple"}  # fmt: skip
_LAPTOP_CARDS = re.compile(r"RTX [345]0[5-9]0(?: Ti)?$")


FindInstance = Callable[[str], tuple[Accelerator | None, float, object]]


def read_hardware(reader: Reader, words: DeviceWords, find_instance: FindInstance) -> None:
    """Fills `hardware`, `gpu_mem_gb`, `cpu_only` and, as extras, `ram_gb`, `gpu_count`."""
    _read_ram(reader)
    found: list[tuple[int, dict[str, object], int | None]] = []
    _read_macs(reader, found)
    _read_cards(reader, words, found)
    _read_machines(reader, found, find_instance)
    no_gpu = reader.search(cue("words", "cpu_only"))
    if no_gpu:
        reader.give("cpu_only", True, no_gpu)
    cpus = _read_cpus(reader)
    if not found and cpus:
        found = cpus
        reader.fields["cpu_only"] = True
    if found:
        _give(reader, found)
    _read_card_memory(reader)


def _give(reader: Reader, found: list[tuple[int, dict[str, object], int | None]]) -> None:
    found.sort(key=lambda f: f[0])
    listed: list[dict[str, object]] = []
    for _, item, memory in found:
        if any(item["name"] == other["name"] for other in listed):
            continue
        listed.append(item)
        if memory is not None and len(found) == 1:
            reader.fields["gpu_mem_gb"] = memory
    reader.fields["hardware"] = listed
    for item in listed:
        n = item["count"]
        assert isinstance(n, int)
        if not 0 < n <= MAX_COUNT:
            reader.problem("device_count_impossible", "hardware", name=item["name"], count=n)


def _read_ram(reader: Reader) -> None:
    for m in reader.matches(_ram()):
        before = reader.left[max(0, m.start() - 4) : m.start()]
        if re.search(r"gpu\s$", before):
            continue
        unit = m.group("unit") or m.group("unit2")
        value = int(m.group("gb") or m.group("gb2")) * (1024 if unit.startswith("t") else 1)
        reader.give_extra("ram_gb", value, m)


def _read_macs(reader: Reader, found: list[tuple[int, dict[str, object], int | None]]) -> None:
    for m in list(reader.matches(_MAC)):
        if not (m.group("box") or m.group("kind")):
            continue
        box = _BOX_NAMES[re.sub(r"\s", "", m.group("box") or "apple")]
        name = f"{box} M{m.group('gen')}"
        if m.group("kind"):
            name += f" {m.group('kind').capitalize()}"
        _add_mac(reader, found, m, name)
    for m in list(reader.matches(_MAC_BOX)):
        if m.group("gb"):
            _add_mac(reader, found, m, _BOX_NAMES[re.sub(r"\s", "", m.group("box"))])


def _add_mac(
    reader: Reader, found: list[tuple[int, dict[str, object], int | None]], m: re.Match[str], name: str
) -> None:
    if m.group("gb"):
        name += f" {m.group('gb')}GB"
    found.append((m.start(), {"name": name, "count": 1}, None))
    reader.claim(m, "hardware", 0.9)


def _read_cards(reader: Reader, words: DeviceWords, found: list[tuple[int, dict[str, object], int | None]]) -> None:
    for m in list(reader.matches(words.pattern)):
        spelled = m.group("known") or m.group("grammar")
        if spelled.isdigit() and re.match(
            rf"\s?(?:{word('tokens')}|{word('samples')}|{word('steps')})(?![a-z])", reader.left[m.end() :]
        ):
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
        elif (before := _memory_before().search(head)) and memory is None:
            memory = int(before.group("gb"))
            start = offset + before.start()
        head = reader.left[max(0, start - 30) : start]
        if nodes := _nodes_before().search(head):
            count = (count or 1) * int(nodes.group(1))
            start -= len(head) - nodes.start()
        name = device.name if memory is None else device.named_with(memory)
        if _LAPTOP_CARDS.fullmatch(name) and reader.has(cue("words", "laptop")):
            name += " Laptop"
        stays = None if device.folded else memory
        found.append((start, {"name": name, "count": 1 if count is None else count}, stays))
        reader.claim_range(start, end, "hardware", 0.95 if count is not None else 0.85)


def _read_machines(
    reader: Reader, found: list[tuple[int, dict[str, object], int | None]], find_instance: FindInstance
) -> None:
    for m in list(reader.matches(_machine())):
        try:
            device, count, _ = find_instance(m.group(0))
        except UnknownName:
            continue
        if found or device is None or count < 1:
            reader.claim(m)
            continue
        name = re.sub(r"\s(\d+GB).*$", r"-\1", device.name)
        found.append((m.start(), {"name": name, "count": int(count)}, None))
        reader.claim(m, "hardware", 0.7)


@cache
def _machine() -> re.Pattern[str]:
    families = source(table("common")["machines"]["families"])
    return re.compile(
        rf"{EDGE_BEFORE}(?:{families}(?:\.\d{{0,2}}x?large|\.metal)?|a[23]-(?:high|ultra|mega)gpu-\d{{1,2}}g|g[24]-standard-\d{{1,3}}"
        rf"|(?:standard_)?n[cdv]\d{{1,3}}[a-z_\d]{{1,24}}_v\d)(?![a-z0-9.])"
    )


def _read_cpus(reader: Reader) -> list[tuple[int, dict[str, object], int | None]]:
    cpus: list[tuple[int, dict[str, object], int | None]] = []
    for m in list(reader.matches(_CPU)):
        text = m.group("count")
        sockets = {"dual": 2, "two": 2}.get(text) or int(text) if text else 1
        name = _cpu_name(m)
        reader.claim(m, "hardware" if name else None, 0.8)
        if name:
            cpus.append((m.start(), {"name": name, "count": sockets}, None))
    return cpus


def _cpu_name(m: re.Match[str]) -> str | None:
    g = m.groupdict()
    if g["xeon"]:
        if not g["xn"]:
            return None
        grade, digits = g["grade"], re.sub(r"\D", "", g["xn"])[:1]
        if grade is None:  # Intel's own numbering: 8 Platinum, 6 and 5 Gold, 4 Silver, 3 Bronze
            grade = {"8": "platinum", "6": "gold", "5": "gold", "4": "silver", "3": "bronze"}.get(digits, "")
        grade = grade.upper() if re.fullmatch(r"e\d|w", grade) else grade.capitalize()
        joint = "-" if grade.startswith("E") or grade == "W" else " "
        return f"Xeon {grade}{joint}{g['xn']}".replace("  ", " ")
    if g["epyc"]:
        return f"EPYC {g['en'].upper()}" if g["en"] else None
    if g["core"]:
        return f"Core {g['core'].split()[-1]}-{g['cn'].upper()}"
    if g["ultra"]:
        return f"Core Ultra {g['ultra'][-1]} {g['un'].upper()}"
    if g["ryzen"]:
        tier = g["ryzen"].split()[1:] or [{"9": "9", "8": "7", "7": "7", "6": "5"}.get(g["rn"][1], "9")]
        return f"Ryzen {tier[0]} {g['rn'].upper()}"
    if g["thread"]:
        return f"Threadripper{' PRO' if g['tpro'] else ''} {g['tn'].upper()}" if g["tn"] else None
    if g["bare"]:
        return f"Ryzen 9 {g['bare'].upper()}" if g["bare"][1] in "59" else f"Ryzen {g['bare'].upper()}"
    return str(g["arm"]).title()


@cache
def _needs() -> re.Pattern[str]:
    return re.compile(rf"{EDGE_BEFORE}{word('needs')}\s(?:[a-z]{{2,6}}\s)?$")


def _read_card_memory(reader: Reader) -> None:
    for m in list(reader.matches(_card_memory())):
        value = int(m.group("gb"))
        count = m.group("count")
        if value == 0 or value > 1024:
            continue
        if reader.fields.get("cpu_only") or "ram_gb" in reader.extra or value > 300:
            if reader.fields.get("cpu_only"):
                reader.give_extra("ram_gb", value, m, 0.6)
            continue
        if "hardware" in reader.fields or (not m.group("word") and _needs().search(reader.left[: m.start()][-24:])):
            continue
        reader.give("gpu_mem_gb", value, m, 0.8)
        if count is not None and numbers.count(count) > 1:
            reader.extra.setdefault("gpu_count", numbers.count(count))
