"""Which words are devices: the catalogue's names and aliases, nicknames of the lexicon, and vendors' naming grammar."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

from bot.questions.lexicon import EDGE_BEFORE, Alternatives, table
from rules.records import dataclass

_MEMORY_OR_FORM = re.compile(r"[ \-]?(?:\b\d+\s?gb\b|\bpcie\b|\bsxm\d?\b|\(.*?\))(?:-\d+gb)?", re.IGNORECASE)
_BRAND = r"(?:(?:nvidia|geforce|amd|radeon|intel|instinct|tesla|rtx|gtx|apple)[\s\-_]?){0,3}"
_GRAMMAR = (
    r"(?:quadro[\s\-](?:rtx[\s\-]?)?[a-z]{0,2}\d{3,4}|(?:rtx|gtx)[\s\-]?\d{3,4}(?:[\s\-]?ti)?(?:[\s\-]?super)?"
    r"|rx[\s\-]?\d{4}(?:[\s\-]?xtx|[\s\-]?xt)?|arc[\s\-]?[ab]\d{3}|mi\d{2,3}[ax]?|\d{4}[\s\-]?ti)"
)


@dataclass(frozen=True, slots=True)
class Device:
    """A device family as people name it.

    `memories` are the GB of its variants. A stated one becomes part of the name where the variants are different
    cards: `folded` (data-centre families, A100-40GB), or where it is not the `usual` one (RTX 4060 Ti 8GB).
    """

    name: str
    memories: frozenset[int]
    folded: bool
    usual: int | None = None

    def named_with(self, memory_gb: int) -> str:
        """The name of the variant with so much memory."""
        if not self.memories or memory_gb == self.usual or (len(self.memories) == 1 and memory_gb in self.memories):
            return self.name
        return f"{self.name}-{memory_gb}GB" if self.folded else f"{self.name} {memory_gb}GB"


class DeviceWords:
    """Spots device names in folded text; built from the catalogue's accelerator rows."""

    def __init__(self, rows: Iterable[Mapping[str, str]]) -> None:
        self._devices: dict[str, Device] = {}
        memories: dict[str, set[int]] = {}
        usual: dict[str, int] = {}
        tiers: dict[str, str] = {}
        names: dict[str, str] = {}
        for row in rows:
            if row["vendor"] == "apple":
                continue  # read by the grammar of Macs
            base = _MEMORY_OR_FORM.sub("", row["name"]).strip()
            memory = round(float(row["memory_gb_marketed"] or 0))
            memories.setdefault(base, set()).add(memory)
            tiers[base] = row["tier"]
            for alias in (base.lower(), *row["aliases"].split(";")):
                short = _MEMORY_OR_FORM.sub("", alias.lower()).strip()
                if re.search(r"\d", short) or " " in short:
                    names.setdefault(short, base)
                if short == alias and alias != base.lower():
                    usual.setdefault(base, memory)
        for alias, base in names.items():
            folded = len(memories[base]) > 1 and tiers[base] == "datacenter"
            self._devices[_key(alias)] = Device(
                base, frozenset(memories[base]), folded, None if folded else usual.get(base)
            )
        aliases = set(names)
        for card in table("common")["cards"]:
            device = Device(card["name"], frozenset(card["memories"]), len(card["memories"]) > 1)
            self._devices |= {_key(alias): device for alias in card["aliases"]}
            aliases |= set(card["aliases"])
        self.pattern = Alternatives(aliases, _known_source, always=_spelled(_GRAMMAR))

    def device(self, match: re.Match[str]) -> Device:
        """The device that a match of `pattern` names."""
        spelled = match.group("name")
        device = self._devices.get(_key(spelled)) or Device(_official(spelled), frozenset(), False)
        form = match.group("form")
        if form:
            kind = "SXM" if "sxm" in form else "PCIe"
            return replace(device, name=f"{device.name}-{kind}")
        return device


def _spelled(name: str) -> str:
    return (
        rf"(?:{EDGE_BEFORE}|(?<=\dx)){_BRAND}(?P<name>{name})(?:'?s)?(?P<form>[\s\-](?:sxm\d?|pcie))?"
        r"(?=[^a-z0-9]|x\d|\d{1,3}g|$)"
    )


def _known_source(alias: str) -> str:
    return _spelled(_flexible(alias))


def _key(text: str) -> str:
    return re.sub(r"[^a-z0-9+]", "", text.lower())


def _flexible(alias: str) -> str:
    """Parts may be written together or apart; one letter and its digits (A2, T4) only together or with a hyphen."""
    parts = re.findall(r"[a-z]+|\d+|[+]", alias)
    joined: str = re.escape(parts[0])
    for before, part in pairwise(parts):
        joined += ("-?" if len(before) == 1 and before.isalpha() else r"[\s\-_]?") + re.escape(part)
    return joined


def _official(text: str) -> str:
    words = re.sub(r"(?<=\d)[\s\-]?(ti|super|xtx|xt)\b", r" \1", re.sub(r"[\s\-]+", " ", text)).split()
    if words and words[0].isdigit():
        words = ["rtx" if int(words[0]) >= 2000 else "gtx", *words]
    fixed = {"ti": "Ti", "quadro": "Quadro", "arc": "Arc", "super": "SUPER"}
    joined = " ".join(fixed.get(w, w.upper()) for w in words)
    return re.sub(r"^(RTX|GTX|RX)(?=\d)", r"\1 ", joined)
