"""Text to `Parsed`: the recognisers in their order. Deterministic, linear in the text, never raises."""

from __future__ import annotations

import re
from typing import Protocol
from weakref import WeakKeyDictionary

from bot.questions.asking import missing
from bot.questions.devices import DeviceWords
from bot.questions.hardware import read_hardware
from bot.questions.intent import decide_intent
from bot.questions.lengths import read_lengths, read_leftovers
from bot.questions.lexicon import cue, stopwords
from bot.questions.models import ModelWords, read_models
from bot.questions.money import read_money
from bot.questions.number_formats import read_formats
from bot.questions.parsed import Intent, Lang, Parsed
from bot.questions.reader import Reader
from bot.questions.task import decide_task, read_host, read_method, read_place, read_tools
from bot.questions.text import MAX_CHARS, clean
from bot.questions.traffic import read_traffic
from rules.catalog.accelerators import Accelerator
from rules.catalog.models import ModelSpec


class NameSource(Protocol):
    """The part of the catalogue that parsing needs: the names that exist."""

    @property
    def accelerators(self) -> tuple[Accelerator, ...]:
        """Every device."""
        ...

    @property
    def models(self) -> tuple[ModelSpec, ...]:
        """Every model."""
        ...


_WORDS: WeakKeyDictionary[NameSource, tuple[DeviceWords, ModelWords]] = WeakKeyDictionary()
_SPANISH_MARKS = re.compile(r"[¿¡ñáéíóú]")


def parse(text: str, catalogue: NameSource) -> Parsed:
    """Understands one question in English or Spanish; whatever the text, the result says what it could not use."""
    cleaned = clean(text)
    lang = language(cleaned.shown, cleaned.folded)
    reader = Reader(cleaned, lang)
    devices, models = _words(catalogue)
    read_money(reader)
    read_traffic(reader)
    read_lengths(reader)
    read_tools(reader)
    read_method(reader)
    formats = read_formats(reader)
    read_models(reader, models)
    read_hardware(reader, devices)
    read_leftovers(reader, reader.extra.get("domain"))
    if reader.has(cue("intents", "benchmark")):
        read_host(reader)
    read_place(reader)
    stated = decide_task(reader, formats, len(formats.weights) > 1 and not reader.fields.get("method"))
    intent = decide_intent(reader)
    return _finished(reader, intent, stated, cleaned.truncated)


def _finished(reader: Reader, intent: Intent, stated: bool, truncated: bool) -> Parsed:
    if intent in ("benchmark", "cost", "unclear", "help") and reader.fields.get("task") == "inference" and not stated:
        del reader.fields["task"]
    implied = not stated and intent in _IMPLY_INFERENCE and ("model" in reader.fields or "params_b" in reader.fields)
    if implied:
        reader.fields["task"] = "inference"
    if truncated:
        reader.problem("text_truncated", None, max_chars=MAX_CHARS)
    _reconcile(reader)
    invalid = frozenset(p.field for p in reader.problems if p.field)
    domain = str(reader.extra.get("domain", "llm"))
    ask, assumed = missing(intent, reader.fields, reader.extra, invalid, domain)
    if implied:
        assumed = {"task": "inference", **assumed}
    return Parsed(
        text=reader.shown,
        intent=intent,
        lang=reader.lang,
        fields=dict(reader.fields),
        extra=dict(reader.extra),
        ask=ask,
        assumed=assumed,
        problems=tuple(reader.problems),
        spans=tuple(sorted(reader.spans, key=lambda s: s.start)),
    )


_IMPLY_INFERENCE = ("fit", "capacity", "recommend", "time", "compare", "concept")


def _reconcile(reader: Reader) -> None:
    """A tensor-parallel degree with a card of unstated count says how many cards there are."""
    tp, hardware = reader.extra.get("tp"), reader.fields.get("hardware")
    if tp and hardware and len(hardware) == 1 and hardware[0]["count"] == 1:
        hardware[0]["count"] = tp


def language(shown: str, folded: str) -> Lang:
    """The language of a question, by its frequent words and letters."""
    words = re.findall(r"[a-z]+", folded[:1000])
    score = sum((w in stopwords("es")) - (w in stopwords("en")) for w in words)
    score += 2 * len(_SPANISH_MARKS.findall(shown[:1000].lower()))
    return "es" if score > 0 else "en"


def _words(catalogue: NameSource) -> tuple[DeviceWords, ModelWords]:
    found = _WORDS.get(catalogue)
    if found is None:
        found = DeviceWords(catalogue.accelerators), ModelWords(m.hf_id for m in catalogue.models)
        _WORDS[catalogue] = found
    return found
