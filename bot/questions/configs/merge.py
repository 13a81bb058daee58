"""A config and the words around it as one question: the config is the ground, what the words say goes over it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bot.questions.configs.config_read import ConfigRead
from bot.questions.parsed import Beaten, Parsed, Span
from bot.questions.reader import Reader

_SPLITS = ("deepspeed", "fsdp", "ddp")  # words for how a run is split: they name no other trainer
_MORE_EXACT = {"lora": ("qlora", "dora")}  # "my LoRA config" may well be one of these


def seed(reader: Reader, config: ConfigRead) -> None:
    """Puts what the config says under what the words will say."""
    reader.fields.update(config.fields)
    reader.extra.update(config.extra)
    reader.problems += config.problems


def joined(parsed: Parsed, config: ConfigRead) -> Parsed:
    """`parsed` with the config's text and spans after those of the words; a span that the words beat is told there."""
    fields = dict(parsed.fields)
    for field in ("framework", "method"):
        if field in config.fields and _vaguer(field, fields.get(field), config.fields[field]):
            fields[field] = config.fields[field]
    offset = len(parsed.text) + 1 if parsed.text else 0
    source = "\n".join(dict.fromkeys(span.text for span in config.spans))
    shown: list[Span] = []
    words = [s for s in parsed.spans if s.field not in fields or s.value == fields[s.field] or s.value is None]
    for span in config.spans:
        start = offset + source.index(span.text)
        moved = replace(span, start=start, end=start + len(span.text))
        now: Any = fields.get(span.field, parsed.extra.get(span.field))
        if now == span.value:
            shown.append(moved)
            continue
        for i, word in enumerate(words):
            if word.field == span.field:
                lost = Beaten(span.field, span.value, moved.start, moved.end, span.confidence, "corrected")
                words[i] = replace(word, beat=(*word.beat, lost))
                break
    text = f"{parsed.text}\n{source}" if parsed.text and source else parsed.text or source
    extra = {**parsed.extra, "config": list(config.families)}
    return replace(parsed, text=text, fields=fields, extra=extra, spans=(*words, *shown))


def _vaguer(field: str, said: Any, config: Any) -> bool:
    """Whether the words only name in general what the config says exactly."""
    if field == "framework":
        return said in _SPLITS and config not in _SPLITS
    return config in _MORE_EXACT.get(said, ())
