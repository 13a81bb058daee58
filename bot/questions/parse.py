"""Text to `Parsed`: the recognisers in their order. Deterministic, linear in the text, never raises."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol
from weakref import WeakKeyDictionary

from bot.questions.asking import missing
from bot.questions.derive import derive_alternatives, derive_counts, derive_lengths, derive_place
from bot.questions.devices import DeviceWords
from bot.questions.hardware import read_hardware
from bot.questions.intent import decide_intent
from bot.questions.known import FindsDevices, check_devices
from bot.questions.lengths import read_leftovers, read_lengths
from bot.questions.lexicon import cue, endings, languages, marks, stopwords
from bot.questions.market import read_market
from bot.questions.models import ModelWords, read_models
from bot.questions.money import read_money
from bot.questions.number_formats import read_formats
from bot.questions.parsed import Lang, Parsed
from bot.questions.reader import Reader
from bot.questions.task import decide_task, read_host, read_method, read_place, read_tools
from bot.questions.text import MAX_CHARS, clean
from bot.questions.traffic import read_traffic
from rules.catalog.accelerators import Accelerator
from rules.catalog.model_names import ModelMatch


class NameSource(FindsDevices, Protocol):
    """The part of the catalogue that parsing needs: the names that exist."""

    @property
    def accelerator_rows(self) -> tuple[Mapping[str, str], ...]:
        """Every device's row."""
        ...

    @property
    def model_ids(self) -> tuple[str, ...]:
        """Every model's Hub id."""
        ...

    def find_model(
        self, name: str | None, params_b: float | None = None, active_params_b: float | None = None
    ) -> ModelMatch:
        """Raises `UnknownName`."""
        ...

    def find_instance(self, name: str) -> tuple[Accelerator | None, float, object]:
        """Device and count of a cloud instance; raises `UnknownName`."""
        ...


DEFAULT_LANGUAGE = "en"
_LANGUAGE_CHARS = 1000
_ENDING_WORD_CHARS = 6  # shorter words end so in any language
_MAY_BE_CONFIG = re.compile(
    r"[\n={`:\\]|(?:^|\s)[-–—]{1,2}[a-z]|(?:vllm|sglang|lmdeploy)\s+serve|(?:axolotl|cli)\s+train|(?<![-\w])tune\s+run"
    r"|launch|ollama|docker|memory|memoria|alloc|oom|kv cache|^from\s",
    re.I,
)
_WORDS: WeakKeyDictionary[NameSource, tuple[DeviceWords, ModelWords]] = WeakKeyDictionary()


def parse(text: str, catalogue: NameSource, *, explain: bool = False) -> Parsed:
    """Understands one question in any language of the lexicon; the result says what it could not use.

    With `explain`, the spans also remember what was overlapped.
    """
    config = None
    if _MAY_BE_CONFIG.search(text):  # the readers of configs take longer to import than a question to parse
        from bot.questions.configs import read_config
        from bot.questions.configs.merge import joined, seed

        config = read_config(text, catalogue)
    cleaned = clean(text if config is None else config.rest)
    lang = language(cleaned.shown, cleaned.folded)
    reader = Reader(cleaned, lang, explain)
    if config is not None:
        seed(reader, config)
    devices, models = _words(catalogue)
    read_money(reader)
    read_traffic(reader)
    read_lengths(reader)
    read_tools(reader)
    read_method(reader)
    formats = read_formats(reader)
    benchmark = reader.has(cue("intents", "benchmark"))
    read_models(reader, models)
    if benchmark:
        read_host(reader, named_so=True)
    read_hardware(reader, devices, catalogue.find_instance)
    read_leftovers(reader, reader.extra.get("domain"))
    if benchmark:
        read_host(reader, named_so=False)
    read_place(reader)
    read_market(reader)
    derive_counts(reader)
    stated = decide_task(reader, formats, len(formats.weights) > 1 and not reader.fields.get("method"))
    intent = "fit" if config is not None and not reader.whole else decide_intent(reader)
    derive_lengths(reader)
    derive_place(reader, intent)
    derive_alternatives(reader, intent)
    if intent == "benchmark" and reader.fields.get("task") == "inference":
        del reader.fields["task"]  # a benchmark names its own workload
    implied = not stated and intent in _IMPLY_INFERENCE and ("model" in reader.fields or "params_b" in reader.fields)
    if implied:
        reader.fields["task"] = "inference"
    if cleaned.truncated:
        reader.problem("text_truncated", None, max_chars=MAX_CHARS)
    check_devices(reader, catalogue)
    parsed = Parsed(
        text=reader.shown,
        intent=intent,
        lang=reader.lang,
        fields=dict(reader.fields),
        extra=dict(reader.extra),
        assumed={"task": "inference"} if implied else {},
        problems=tuple(reader.problems),
        spans=reader.spans,
    )
    if config is not None:
        parsed = joined(parsed, config)
    return finish(parsed, frozenset(("hardware",)) if reader.has(cue("intents", "recommend")) else frozenset())


def finish(parsed: Parsed, answered: frozenset[str]) -> Parsed:
    """`parsed` with what it leaves out: asked, or assumed; `answered` are fields that the question itself asks for."""
    invalid = frozenset(p.field for p in parsed.problems if p.field)
    ask, assumed = missing(parsed.intent, parsed.fields, parsed.extra, invalid, answered)
    if "task" in parsed.assumed:
        assumed = {"task": parsed.assumed["task"], **assumed}
    return replace(parsed, ask=ask, assumed=assumed)


_IMPLY_INFERENCE = ("fit", "capacity", "recommend", "time", "compare", "concept", "cost")


def language(shown: str, folded: str) -> Lang:
    """The language of a question, by its frequent words and letters."""
    best, most = DEFAULT_LANGUAGE, language_evidence(DEFAULT_LANGUAGE, shown, folded)
    for lang in languages():
        score = language_evidence(lang, shown, folded)
        if score > most:
            best, most = lang, score
    return best


def language_evidence(lang: str, shown: str, folded: str) -> int:
    """How much a text looks like a language: its frequent words and endings, and twice its own letters and signs."""
    told = re.findall(r"[a-z]+", folded[:_LANGUAGE_CHARS])
    known, ends, signs = stopwords(lang), endings(lang), marks(lang)
    hits = sum(w in known or (bool(ends) and len(w) >= _ENDING_WORD_CHARS and w.endswith(ends)) for w in told)
    letters = sum(c in signs for c in shown[:_LANGUAGE_CHARS].lower())
    return int(hits) + 2 * int(letters)


def _words(catalogue: NameSource) -> tuple[DeviceWords, ModelWords]:
    found = _WORDS.get(catalogue)
    if found is None:
        found = DeviceWords(catalogue.accelerator_rows), ModelWords(catalogue.model_ids)
        _WORDS[catalogue] = found
    return found
