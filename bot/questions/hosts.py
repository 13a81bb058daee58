"""Machines in a question other than cards: Macs, CPUs, host memory, cloud instances and hosted notebooks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from bot.questions.lexicon import EDGE_AFTER, EDGE_BEFORE, Needing, remembered, source, table, word, words
from bot.questions.reader import Reader
from rules.catalog.accelerators import Accelerator
from rules.catalog.errors import UnknownName
from rules.records import dataclass

GB = r"(?:gigabytes|gigas|gigs|gig|gib|gb|g)"
FindInstance = Callable[[str], tuple[Accelerator | None, float, object]]


@dataclass(frozen=True, slots=True)
class Mention:
    """Hardware named by the words `start:end`.

    `memory_gb` is stated memory that is not part of the name; `counted` whether the words say how many.
    """

    start: int
    end: int
    name: str
    count: int
    memory_gb: int | None = None
    counted: bool = False


@remembered
def _ram() -> Needing:
    ram = word("ram")
    return Needing(
        rf"{EDGE_BEFORE}(?P<gb>\d{{1,5}})\s?(?P<unit>tb|t|{GB})?\s?(?:of\s|de\s)?(?:{ram}){EDGE_AFTER}"
        rf"|{EDGE_BEFORE}(?:{ram})\s?[:=]?\s?(?P<gb2>\d{{1,5}})\s?(?P<unit2>tb|{GB})(?![a-z0-9])",
        words("ram"),
    )


_CPU = Needing(
    EDGE_BEFORE
    + r"(?:(?P<count>\d{1,2}|dual|two)\s?x?\s)?(?:(?:intel|amd)\s)?(?:"
    + r"(?P<xeon>xeon)[\s\-]?(?P<grade>gold|platinum|silver|bronze|max|e5|e7|e3|w)?[\s\-]?"
    + r"(?P<xn>w?\d?-?\d{4}[a-z+]{0,2}(?:\sv\d)?)?"
    + r"|(?P<epyc>epyc)[\s\-]?(?P<en>\d{4}[a-z]{0,2})?"
    + r"|(?P<core>(?:core\s)?i[3579])[\s\-](?P<cn>\d{4,5}[a-z]{0,2})"
    + r"|(?P<ultra>core ultra [579]) (?P<un>\d{3}[a-z]{0,2})"
    + r"|(?P<ryzen>ryzen(?:\s[3579])?)\s(?P<rn>\d{4}[a-z0-9]{0,3})"
    + r"|(?P<thread>threadripper)(?:\s(?P<tpro>pro))?(?:\s(?P<tn>\d{4}[a-z]{0,2}))?"
    + r"|(?P<bare>[3579][5679]\d0x3?d?)"
    + r"|(?P<arm>graviton\s?\d|altra max|ampereone)"
    + r")"
    + EDGE_AFTER,
    ("xeon", "epyc", "i3", "i5", "i7", "i9", "core", "ryzen", "threadripper", "0x", "graviton", "altra", "ampere"),
)
_MAC = Needing(
    EDGE_BEFORE
    + r"(?P<box>mac\s?studio|mac\s?mini|mac\s?pro|mac\s?book(?:\s(?:pro|air))?|mbp|imac|mac|apple)?"
    + r"\s?(?:with\s(?:an?\s)?|con\s(?:un\s)?|\()?"
    + r"m(?P<gen>[1-9])(?:[\s\-]?(?P<kind>pro|max|ultra))?"
    + EDGE_AFTER
    + r"(?:\)?[\s\-,(]{0,2}(?:with\s|de\s|con\s)?(?P<gb>\d{1,3})(?:\s?gb|\s?g|\s?gigs)?(?![\w.]))?",
    [f"m{n}" for n in range(1, 10)],
)
_MAC_BOX = Needing(
    EDGE_BEFORE + r"(?P<box>mac\s?studio|mac\s?mini|mac\s?pro|mac\s?book(?:\s(?:pro|air))?|mbp|imac|mac)" + EDGE_AFTER
    + r"(?:\s(?:with\s|de\s|con\s)?(?P<gb>\d{1,3})\s?g(?:b|igs)?(?![\w]))?",
    ("mac", "mbp"),
)  # fmt: skip
_BOX_NAMES = {"macstudio": "Mac Studio", "macmini": "Mac mini", "macpro": "Mac Pro", "macbook": "MacBook",
              "macbookpro": "MacBook Pro", "macbookair": "MacBook Air", "mbp": "MacBook Pro", "imac": "iMac",
              "mac": "Mac", "apple": "Apple"}  # fmt: skip


@remembered
def memory_before() -> re.Pattern[str]:
    """Memory that is written before a device: "24gb 3090"."""
    return re.compile(rf"{EDGE_BEFORE}(?P<gb>\d{{1,3}})\s?{GB}[\s\-](?:vram\s)?(?:nvidia\s)?$")


def read_ram(reader: Reader) -> None:
    for m in reader.matches(_ram()):
        before = reader.left[max(0, m.start() - 4) : m.start()]
        if re.search(r"gpu\s$", before):
            continue
        unit = m.group("unit") or m.group("unit2") or "gb"
        value = int(m.group("gb") or m.group("gb2")) * (1024 if unit.startswith("t") else 1)
        reader.give_extra("ram_gb", value, m)


def read_macs(reader: Reader, found: list[Mention]) -> None:
    for m in list(reader.matches(_MAC)):
        if not (m.group("box") or m.group("kind")):
            continue
        box = _BOX_NAMES[re.sub(r"\s", "", m.group("box") or "apple")]
        name = f"{box} M{m.group('gen')}"
        if m.group("kind"):
            name += f" {m.group('kind').capitalize()}"
        _add_mac(reader, found, m, name)
    for m in list(reader.matches(_MAC_BOX)):
        if m.group("gb") or memory_before().search(reader.left[max(0, m.start() - 16) : m.start()]):
            _add_mac(reader, found, m, _BOX_NAMES[re.sub(r"\s", "", m.group("box"))])


def _add_mac(reader: Reader, found: list[Mention], m: re.Match[str], name: str) -> None:
    start, memory = m.start(), m.group("gb")
    if memory is None and (before := memory_before().search(reader.left[max(0, start - 16) : start])):
        memory, start = before.group("gb"), start - len(before.group(0))
    memory = memory if memory and int(memory) else None
    found.append(Mention(start, m.end(), f"{name} {memory}GB" if memory else name, 1))
    reader.claim_range(start, m.end(), "hardware", 0.9)


def spot_instances(reader: Reader, find_instance: FindInstance) -> list[Mention]:
    """Machines of a cloud by their names, which may hold a card's (Standard_NC24ads_A100_v4)."""
    spotted = []
    for m in list(reader.matches(_instance(), "hardware")):
        try:
            device, count, _ = find_instance(m.group(0))
        except UnknownName:
            continue
        if device is not None and count >= 1:
            name = re.sub(r"\s(\d+GB).*$", r"-\1", device.name)
            spotted.append(Mention(*m.span(), name, int(count), counted=True))
        reader.claim(m)
    return spotted


def place_instances(reader: Reader, spotted: list[Mention], found: list[Mention]) -> None:
    """A named machine is the hardware where no card is named; beside its own card ("A100 … on a p4d") it says how
    many there are."""
    for machine in spotted:
        same = next((f for f in found if not f.counted and machine.name.startswith(f.name)), None)
        if same is not None:
            found[found.index(same)] = replace(same, count=machine.count, counted=True)
        elif not found:
            found.append(machine)
        else:
            continue
        reader.read("hardware", machine.start, machine.end, 0.7)


@remembered
def _instance() -> Needing:
    known = table("common")["machines"]["families"]
    families = source(known)
    return Needing(
        rf"{EDGE_BEFORE}(?:{families}(?:\.\d{{0,2}}x?large|\.metal)?"
        r"|a[23]-(?:high|ultra|mega)gpu-\d{1,2}g|g[24]-standard-\d{1,3}"
        r"|(?:standard_)?n[cdv]\d{1,3}[a-z_\d]{1,24}_v\d)(?![a-z0-9.])",
        (*known, "gpu", "standard", "nc", "nd", "nv"),
    )


def read_cpus(reader: Reader) -> list[Mention]:
    cpus: list[Mention] = []
    for m in list(reader.matches(_CPU)):
        text = m.group("count")
        sockets = {"dual": 2, "two": 2}.get(text) or int(text) if text else 1
        name = _cpu_name(m)
        reader.claim(m, "hardware" if name else None, 0.8)
        if name:
            cpus.append(Mention(*m.span(), name, sockets, counted=text is not None))
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
