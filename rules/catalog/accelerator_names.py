"""From what people write to an `Accelerator`: variants by memory and form, modified cards, generic devices."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rules.catalog.accelerators import Accelerator, Tier
from rules.catalog.errors import UnknownName

_MEMORY = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*(?:g|gb|gib|gigs?)(?![a-z0-9])")
_COUNT = re.compile(r"^\d{1,3}\s*[x×]\s*")
_GLUED_FORM = re.compile(r"(?<=\d)(sxm|pcie|nvl)")
_TOKEN = re.compile(r"[a-z]*\d+[a-z]*\d*[a-z]*|[a-z]+|\d+")
_SUFFIX = re.compile(r"(\d{4})(ti|super|s|d|xtx|xt|gre|m)$")
_APPLE = re.compile(r"(?<![a-z0-9])m([1-9])[\s-]*(pro|max|ultra)?(?![a-z0-9])(?:.*?(\d+)[\s-]*core|\s+(\d+)$)?")
_FORMS = {"sxm": "sxm", "sxm2": "sxm", "sxm3": "sxm", "sxm4": "sxm", "sxm5": "sxm", "sxm6": "sxm", "hgx": "sxm",
          "pcie": "pcie", "nvl": "nvl"}  # fmt: skip
_DROPPED = frozenset(
    "nvidia geforce tesla amd radeon instinct intel rtx gtx rx gpu gpus card cards graphics graphic geforces tensor "
    "core founders edition fe oc strix tuf aorus suprim class device one of two four a an the board jetson "
    "accelerator data center dgx together datacenter centre vram ram memory hbm hbm2 hbm2e hbm3 hbm3e gddr6 gddr6x "
    "gddr7 single each desktop modified modded mod free google cloud laptops gen generation series 1x".split()
)
_GENERIC = frozenset(
    "consumer gaming modern gpu gpus card cards geforce nvidia data centre center datacenter device graphics".split()
)
_SPEAKING = frozenset("ti super laptop mobile max q d xt xtx gre ada pro nvl s server dual blackwell sff m".split())
_SAME_MEMORY = 0.12  # stated and listed memory within 12 % are the same card (marketed GB, nvidia-smi GiB, torch GiB)


class AcceleratorIndex:
    """Resolves device names over raw rows; an `Accelerator` is built only for the row that is asked for."""

    def __init__(self, rows: Sequence[Mapping[str, str]], origins: Sequence[str] | None = None) -> None:
        self._rows = rows
        self._origins = origins or ["catalogue"] * len(rows)
        self._built: dict[int, Accelerator] = {}
        self._exact: dict[str, int] = {}
        self._by_core: dict[str, list[int]] = {}
        for i, row in enumerate(rows):
            for name in (row["name"], *row["aliases"].split(";")):
                if not name:
                    continue
                self._exact.setdefault(_plain(name), i)
                core, _, _ = _split(name)
                listed = self._by_core.setdefault(" ".join(core), [])
                if core and i not in listed:
                    listed.append(i)

    def build(self, i: int) -> Accelerator:
        """The typed row; raises `CatalogError` where the row is invalid."""
        if i not in self._built:
            self._built[i] = Accelerator.from_row(self._rows[i], self._origins[i])
        return self._built[i]

    def all(self) -> tuple[Accelerator, ...]:
        """Every device of the catalogue, in file order."""
        return tuple(self.build(i) for i in range(len(self._rows)))

    def find(self, name: str, memory_gib: float | None = None) -> Accelerator:
        """The device of that name; `memory_gib` (2**30 bytes) picks the variant or describes a modified card.

        A name that says nothing but a memory gives a generic device. Raises `UnknownName` with near matches.
        """
        text = _COUNT.sub("", re.sub(r"\s\+\s.*$", "", name.strip().lower()))
        core, form, written = _split(text)
        exact = self._exact.get(_plain(text))
        if exact is not None and (memory_gib is None or not core):
            return self.build(exact) if memory_gib is None else self._with_memory([exact], memory_gib)
        if not core or all(w in _GENERIC for w in core):
            memory = memory_gib or written
            if memory is None:
                raise UnknownName("accelerator", name, self.suggestions(name) if name else ())
            return generic_device(name or f"{memory:g} GiB GPU", memory)
        rows, core = self._rows_of(text, core)
        if not rows and core[-1].isdigit() and (fewer := self._rows_of(text, core[:-1])[0]):
            listed = any(self._distance(i, float(core[-1])) <= _SAME_MEMORY for i in fewer)
            rows, written, core = fewer, float(core[-1]) if listed else written, core[:-1]
        if not rows:
            raise UnknownName("accelerator", name, self.suggestions(name))
        return self._variant(rows, " ".join(core), text, form, memory_gib, written)

    def _rows_of(self, text: str, core: list[str]) -> tuple[list[int], list[str]]:
        apple = _APPLE.search(text)
        if apple:
            chip = f"m{apple.group(1)}" + (f" {apple.group(2)}" if apple.group(2) else "")
            stated = apple.group(3) or apple.group(4)
            cores = [f"{chip} {stated}"] if stated else []
            for key in (*cores, chip):
                if key in self._by_core:
                    return self._by_core[key], key.split()
        if found := self._by_core.get(" ".join(core)):
            return found, core
        outside = re.sub(r"\(.*?\)", " ", text)
        if outside != text and (found := self._by_core.get(" ".join(_split(outside)[0]))):
            return found, core
        for length in range(len(core) - 1, 0, -1):
            for start in range(len(core) - length + 1):
                run = core[start : start + length]
                left = core[:start] + core[start + length :]
                found = self._by_core.get(" ".join(run))
                if found and any(c.isdigit() for c in " ".join(run)) and not _says_more(left):
                    return found, run
        return [], core

    def _variant(
        self,
        rows: list[int],
        core: str,
        text: str,
        form: str | None,
        memory_gib: float | None,
        written: float | None,
    ) -> Accelerator:
        preferred = (self._exact.get(_plain(text)), self._exact.get(core))
        first = next((i for i in preferred if i is not None and i in rows), rows[0])
        ordered = [first, *(i for i in rows if i != first)]
        if form:
            ordered = [i for i in ordered if _form(self._rows[i]) == form] or ordered
        if memory_gib is None and written is None:
            return self.build(ordered[0])
        if self.build(ordered[0]).unified_memory and written is not None:
            memory_gib = written  # a stated GPU share does not change the chip's memory
        memory = memory_gib if memory_gib is not None else written
        assert memory is not None
        return self._with_memory(ordered, memory)

    def _distance(self, i: int, memory: float) -> float:
        row = self._rows[i]
        return min(abs(float(row[k]) / memory - 1) for k in ("memory_gib", "memory_gb_marketed"))

    def _with_memory(self, ordered: list[int], memory: float) -> Accelerator:
        best = min(ordered, key=lambda i: self._distance(i, memory))
        nearest = self.build(best)
        if self._distance(best, memory) <= (0.03 if nearest.unified_memory else _SAME_MEMORY):
            return nearest
        total = float(memory) if nearest.unified_memory else memory * nearest.memory_gib / nearest.memory_gb_marketed
        return replace(
            nearest,
            name=f"{nearest.name} ({memory:g} GB)",
            aliases=(),
            memory_gib=total,
            memory_gb_marketed=memory,
            list_price_usd=None,
            street_price_usd=None,
            origin="modified",
        )

    def suggestions(self, name: str, limit: int = 3) -> tuple[str, ...]:
        """Catalogue names whose spelling is near the name, best first."""
        from rapidfuzz import fuzz, process

        wanted = _plain(name)
        found = process.extract(wanted, list(self._exact), scorer=fuzz.ratio, limit=3 * limit, score_cutoff=50)
        return tuple(dict.fromkeys(self._rows[self._exact[key]]["name"] for key, _, _ in found))[:limit]


def generic_device(name: str, memory_gib: float) -> Accelerator:
    """A device of which only the memory is known: a current NVIDIA card of the tier that such memory is sold in.

    Rates are left unknown; `bandwidth_gb_s` is the lowest of the memory class, so that speeds err on the slow side.
    """
    tier: Tier = "datacenter" if memory_gib > 34 else "consumer"
    bandwidth = next(rate for limit, rate in _GENERIC_BANDWIDTH if memory_gib <= limit)
    return Accelerator(
        name=name, aliases=(), vendor="nvidia", architecture="", compute_capability="8.6", tier=tier,
        memory_gib=memory_gib, memory_gb_marketed=memory_gib, memory_type="", bandwidth_gb_s=bandwidth,
        origin="generic", unverified_fields=("compute_capability", "bandwidth_gb_s"),
    )  # fmt: skip


# Lowest bandwidth (GB/s) among common NVIDIA cards of at most so many GiB: RTX 3050, 3060, 4060 Ti, L4, A40, A100 PCIe
# 40GB, H100 PCIe.
_GENERIC_BANDWIDTH = ((8, 224), (12, 360), (16, 288), (34, 300), (49, 696), (80, 1555), (float("inf"), 2000))


def _plain(name: str) -> str:
    return " ".join(name.lower().replace("-", " ").split())


def _words(text: str) -> list[str]:
    return _TOKEN.findall(_GLUED_FORM.sub(r" \1", text) if "sxm" in text or "pcie" in text else text)


def _split(text: str) -> tuple[list[str], str | None, float | None]:
    """Core tokens, form factor and stated memory of a device name."""
    text = text.lower().replace("-", " ")
    memory = _MEMORY.search(text)
    if memory:
        text = _MEMORY.sub(" ", text)
    form: str | None = None
    core: list[str] = []
    for word in _words(text):
        if word in _FORMS:
            form = _FORMS[word]
        elif word in ("mobile", "notebook"):
            core.append("laptop")
        elif word not in _DROPPED and not word.endswith("core"):
            suffix = _SUFFIX.fullmatch(word) if len(word) > 4 else None
            core += list(suffix.groups()) if suffix else [word]
    return core, form, float(memory.group(1)) if memory else None


def _form(row: Mapping[str, str]) -> str:
    if "nvl" in row["name"].lower().split():
        return "nvl"
    return "sxm" if row["form_factor"].lower() in ("sxm", "sxm2", "sxm4", "sxm5", "oam") else "pcie"


def _says_more(words: list[str]) -> bool:
    return any(w in _SPEAKING or any(c.isdigit() for c in w) for w in words)
