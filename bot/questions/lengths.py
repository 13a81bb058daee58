"""Lengths and shapes in a question: context, prompt and answer, batch, rank, steps, epochs, image size, parallelism."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.questions import numbers
from bot.questions.lexicon import EDGE_AFTER, EDGE_BEFORE, Needing, cue, remembered, word, words
from bot.questions.reader import Reader

_N = rf"(?P<n>{numbers.NUMBER})\s?(?P<k>k|m)?"
_OUT = rf"(?P<o>{numbers.NUMBER})\s?(?P<ok>k|m)?"
_SMALL = r"(?P<n>\d{1,6})"
_IS = r"(?:\s?[:=@]\s?|\s)?(?:around\s|about\s|of\s|de\s|~\s?|up\sto\s|hasta\s|a\s|to\s|is\s|unos\s|unas\s)?(?:~\s?)?"
_PER_DEVICE_REACH = 10  # "bs 2 per gpu"
MAX_CONTEXT = 100_000_000


@remembered
def _patterns() -> dict[str, Needing]:
    ctx, batch, rank, tok = word("context"), word("batch"), word("rank"), word("tokens")
    joined = rf"(?:\s?[,/]\s?|\s{word('join')}\s)"
    goes_on = rf"(?:{word('join')}|{word('for')}|host){EDGE_AFTER}"
    listed = rf"{joined}\d{{1,6}}(?![.,]?\d|[a-z%\-]|\s?[x%$€](?![a-z])|\s(?!{goes_on})[a-z])"
    sources = {
        "in_out": rf"{_N}\s?(?:{tok}\s)?(?:in|input)(?:\s?[/,&+]\s?|\s(?:and\s)?){_OUT}\s?(?:{tok}\s)?(?:out|output)",
        "input_before": rf"{_N}(?:(?:[\s\-]?{tok})?\s(?:{word('filler')}\s){word('input')}"
        rf"|[\s\-]?{tok}\s{word('input')}|\s{word('input')}\s{tok})",
        "input_after": rf"{word('input')}{_IS}{_N}",
        "output_after": rf"{word('output')}{_IS}{_N}",
        "output_before": rf"{_N}\s?(?:{word('tokens')}\s(?:de\s)?)?{word('output')}",
        "batches": rf"{batch}{_IS}(?P<n>\d{{1,6}})(?P<more>(?:{listed}){{0,8}})",
        "batch_before": rf"{_SMALL}\s{batch}",
        "accumulation": rf"{word('accumulation')}{_IS}{_SMALL}",
        "accumulation_before": rf"{_SMALL}\s{word('accumulation')}",
        "rank": rf"(?:{rank}\s?[=:]\s?|(?:rank|rango|dim|lora\sr|network\sdim)\s?(?:of\s|de\s)?|r\s?)(?P<n>\d{{1,4}})",
        "tp": r"(?:tp|tensor[\s\-]parallel(?:ism)?(?:[\s\-]size)?)\s?[=:]?\s?(?P<n>\d{1,3})",
        "pp": r"(?:pp|pipeline[\s\-]parallel(?:ism)?(?:[\s\-]size)?)\s?[=:]?\s?(?P<n>\d{1,3})",
        "gpu_layers": r"-?(?:ngl|n[\s_\-]gpu[\s_\-]layers)\s?[=:]?\s?(?P<n>\d{1,4})",
        "steps": rf"(?P<n>{numbers.NUMBER})\s?(?P<k>k)?\s?{word('steps')}",
        "epochs": rf"(?P<n>\d{{1,4}})\s?{word('epochs')}",
        "frames": rf"{_SMALL}\s?{word('frames')}",
        "image_size": r"(?:@\s?)?(?P<n>\d{2,5})(?:\s?x\s?\d{2,5}(?:\s?px)?|\s?(?:px|pixels|pixeles|p))",
        "context_flag": rf"-c\s{_N}",
        "context_set": rf"{ctx}\s?[:=]\s?{_N}",
        "context_after": rf"{ctx}{_IS}{_N}",
        "context_before": rf"{_N}[\s\-]?(?:[a-z]{{3,9}}\s)?{ctx}",
    }
    needs: dict[str, tuple[Sequence[str], ...]] = {
        "in_out": (("in",), ("out",)),
        "input_before": (words("input"),),
        "input_after": (words("input"),),
        "output_after": (words("output"),),
        "output_before": (words("output"),),
        "batches": (words("batch"),),
        "batch_before": (words("batch"),),
        "accumulation": (words("accumulation"),),
        "accumulation_before": (words("accumulation"),),
        "rank": (("r", "dim"),),
        "tp": (("tp", "tensor"),),
        "pp": (("pp", "pipeline"),),
        "gpu_layers": (("ngl", "layers"),),
        "steps": (words("steps"),),
        "epochs": (words("epochs"),),
        "frames": (words("frames"),),
        "image_size": (("x", "p"),),
        "context_flag": (("c",),),
        "context_set": (words("context"), (":", "=")),
        "context_after": (words("context"),),
        "context_before": (words("context"),),
    }
    return {key: Needing(rf"{EDGE_BEFORE}(?<!\d[.,]){text}{EDGE_AFTER}", *needs[key]) for key, text in sources.items()}


_LEFTOVER_K = re.compile(rf"(?<![\w.,$€])(?P<n>\d{{1,4}}(?:\.\d)?)\s?(?P<k>k){EDGE_AFTER}")
_LEFTOVER_SIZE = re.compile(rf"(?:@|\ba\s|\bat\s|\s)\s?(?P<n>\d{{3,4}}){EDGE_AFTER}(?!\s?(?:g|gb|steps|tok))")


_FIELDS = {"context_flag": "context", "context_after": "context", "context_before": "context", "pp": "pp",
           "gpu_layers": "gpu_layers", "epochs": "epochs", "frames": "frames", "output_after": "output_len",
           "output_before": "output_len", "input_before": "input_len", "input_after": "input_len"}  # fmt: skip


def read_lengths(reader: Reader) -> None:
    """Fills `context`, `batch`, `lora_rank` and the extras for shapes that the field list does not have."""
    p = _patterns()
    _read_counts(reader, p)
    for m in list(reader.matches(p["context_set"], "context")):
        _give_context(reader, m, 0.95)
    _read_prompt_and_answer(reader, p)
    for key in ("context_flag", "context_after", "context_before"):
        for m in list(reader.matches(p[key], _FIELDS[key])):
            _give_context(reader, m)


def read_leftovers(reader: Reader, domain: str | None) -> None:
    """What only the rest of the text can decide: a bare `16k` is a context, a bare 1024 an image size for pictures."""
    if domain in ("diffusion", "vision"):
        if m := reader.search(_LEFTOVER_SIZE):
            reader.give_extra("resolution", int(m.group("n")), m, 0.7)
        return
    for m in list(reader.matches(_LEFTOVER_K)):
        _give_context(reader, m, 0.6)


def _give_context(reader: Reader, m: re.Match[str], confidence: float = 0.9) -> None:
    value = _tokens(reader, m.group("n"), m.group("k"))
    if value < 16 and m.group("k") is None:
        return
    if value > MAX_CONTEXT:
        reader.problem("context_impossible", "context", context=value)
        reader.claim(m)
        return
    reader.give("context", value, m, confidence)


def _tokens(reader: Reader, text: str, suffix: str | None) -> int:
    return numbers.tokens(numbers.number(text, decimal_comma=reader.decimal_comma), suffix)


def _read_counts(reader: Reader, p: dict[str, Needing]) -> None:
    for m in list(reader.matches(p["batches"], "batch")):
        values = [int(v) for v in re.findall(r"\d+", m.group("n") + m.group("more"))]
        if len(values) > 1:
            reader.extra.setdefault("batches", values)
        near = reader.whole[m.start() : m.end() + _PER_DEVICE_REACH]
        if cue("words", "per_device").search(near):
            reader.extra["batch_per_device"] = True
        if values[0] == 0:
            reader.problem("batch_not_positive", "batch", batch=0)
        reader.give("batch", values[0], m)
    for m in list(reader.matches(p["batch_before"], "batch")):
        reader.give("batch", int(m.group("n")), m, 0.6)
    for key in ("accumulation", "accumulation_before"):
        for m in list(reader.matches(p[key], "grad_accum")):
            reader.give_extra("grad_accum", int(m.group("n")), m)
    for m in list(reader.matches(p["rank"], "lora_rank")):
        if int(m.group("n")) > 1:
            reader.give("lora_rank", int(m.group("n")), m)
    degrees = list(reader.matches(p["tp"], "tp"))
    for m in sorted(degrees, key=lambda m: -int(m.group("n"))):
        reader.give_extra("tp", int(m.group("n")), m)  # of several, the largest is asked about
    for key in ("pp", "gpu_layers", "epochs", "frames"):
        for m in list(reader.matches(p[key], _FIELDS[key])):
            reader.give_extra(key, int(m.group("n")), m)
    for m in list(reader.matches(p["steps"], "steps")):
        value = numbers.number(m.group("n"), m.group("k"), decimal_comma=reader.decimal_comma)
        reader.give_extra("steps", numbers.tidy(value), m)
    for m in list(reader.matches(p["image_size"], "resolution")):
        reader.give_extra("resolution", int(m.group("n")), m)


def _read_prompt_and_answer(reader: Reader, p: dict[str, Needing]) -> None:
    for m in list(reader.matches(p["in_out"], "input_len")):
        reader.extra.setdefault("output_len", _tokens(reader, m.group("o"), m.group("ok")))
        reader.give_extra("input_len", _tokens(reader, m.group("n"), m.group("k")), m)
    for key, field in (
        ("input_before", "input_len"),
        ("output_after", "output_len"),
        ("output_before", "output_len"),
        ("input_after", "input_len"),
    ):
        for m in list(reader.matches(p[key], _FIELDS[key])):
            value = _tokens(reader, m.group("n"), m.group("k"))
            if value >= 16:
                reader.give_extra(field, value, m, 0.8)
