"""Number formats in a question: GGUF quants, EXL2 bits, AWQ, GPTQ, plain bit widths; weights and KV cache apart."""

from __future__ import annotations

import re

from bot.questions.lexicon import EDGE_AFTER, EDGE_BEFORE, choices
from bot.questions.reader import Reader
from rules.records import dataclass

_GGUF = re.compile(
    rf"{EDGE_BEFORE}(?:gguf[\s:\-]{{1,2}})?(?:ud-)?(?P<q>i?q[1-8])[_\s\-]?"
    rf"(?P<kind>k[_\s\-]?(?:xs|xl|s|m|l)|k|xxs|xs|nl|[01])(?:[_\s\-](?P<size>xs|xl|s|m|l))?{EDGE_AFTER}"
)
_IQ = re.compile(rf"{EDGE_BEFORE}(?P<q>iq[1-4])[_\s\-]?(?P<kind>xxs|xs|nl|s|m){EDGE_AFTER}")
_BPW = re.compile(
    rf"{EDGE_BEFORE}(?:(?P<exl>exl[23])[\s\-@]{{0,2}})?(?:at\s)?(?P<bits>\d(?:\.\d{{1,3}})?)\s?bpw(?:\s(?P<exl_after>exl[23]))?{EDGE_AFTER}"
    rf"|{EDGE_BEFORE}(?P<exl_only>exl[23])[\s\-@]{{1,2}}(?:at\s)?(?P<bits_only>\d(?:\.\d{{1,3}})?)(?![\w.])"
)
_GPTQ = re.compile(
    rf"{EDGE_BEFORE}(?:gptq[\s\-]?(?:int)?(?P<a>[2348])(?:[\s\-]?bits?)?|(?:int)?(?P<b>[2348])[\s\-]?bits?\sgptq){EDGE_AFTER}"
)
_AWQ = re.compile(rf"{EDGE_BEFORE}(?:awq[\s\-](?:int4|4[\s\-]?bits?)|(?:int4|4[\s\-]?bits?)\sawq){EDGE_AFTER}")
_BARE_Q = re.compile(rf"{EDGE_BEFORE}q(?P<bits>[2356]){EDGE_AFTER}")
_KV_BEFORE = re.compile(r"kv(?:[\s\-]cache)?(?:\s(?:in|at|en|a|to|is|=))?[\s:=\-]{0,2}$")
_KV_AFTER = re.compile(r"[\s\-](?:for\s(?:the\s)?)?kv(?![a-z0-9])")


@dataclass(frozen=True, slots=True)
class Formats:
    """Formats in the order in which they were said, with where; `generic` if only "quantized" was said."""

    weights: tuple[str, ...]
    generic: bool
    places: tuple[tuple[int, int], ...] = ()


def read_formats(reader: Reader) -> Formats:
    """Claims every number format; the KV cache's own goes to the extra `kv_dtype`, the weights' are returned."""
    found: list[tuple[int, int, str]] = []

    def note(m: re.Match[str], value: str) -> None:
        found.append((m.start(), m.end(), value))
        reader.claim(m)

    for pattern in (_GGUF, _IQ):
        for m in list(reader.matches(pattern)):
            groups = m.groupdict()
            kind = re.sub(r"[\s\-]", "_", groups["kind"])
            kind = re.sub(r"^k(?=[a-z])", "k_", kind)
            size = f"_{groups['size']}" if groups.get("size") else ""
            note(m, f"gguf:{groups['q']}_{kind}{size}".upper().replace("GGUF:", "gguf:"))
    for m in list(reader.matches(_BPW)):
        engine = m.group("exl") or m.group("exl_after") or m.group("exl_only") or "exl2"
        note(m, f"{engine}:{m.group('bits') or m.group('bits_only')}")
    for m in list(reader.matches(_GPTQ)):
        note(m, f"gptq-{m.group('a') or m.group('b')}bit")
    for m in list(reader.matches(_AWQ)):
        note(m, "awq")
    for value, said in choices("formats"):
        for m in list(reader.matches(said)):
            note(m, value)
    for m in list(reader.matches(_BARE_Q)):
        bits = m.group("bits")
        note(m, {"5": "gguf:Q5_K_M", "6": "gguf:Q6_K", "3": "gguf:Q3_K_M", "2": "gguf:Q2_K"}[bits])
    return _sorted_out(reader, found)


def _sorted_out(reader: Reader, found: list[tuple[int, int, str]]) -> Formats:
    weights: dict[str, tuple[int, int]] = {}
    for start, end, value in sorted(found):
        if _KV_BEFORE.search(reader.whole[max(0, start - 20) : start]) or _KV_AFTER.match(reader.whole, end):
            reader.offer_extra("kv_dtype", value.removeprefix("gguf:").lower(), start, end)
        else:
            weights.setdefault(value, (start, end))
    generic = weights.pop("quantized", None) is not None and not weights
    return Formats(tuple(weights), generic, tuple(weights.values()))
