"""What follows from several stated facts together: lengths summed, samples times length, one count for many cards…"""

from __future__ import annotations

import re
from typing import Any

from bot.questions.lexicon import EDGE_AFTER, EDGE_BEFORE, remembered, word
from bot.questions.parsed import Intent
from bot.questions.reader import Reader

_LANGUAGE_DOMAINS = (None, "llm", "encoder")


def derive_counts(reader: Reader) -> None:
    """A count of processes, a tensor-parallel degree, or a count that stands apart ("8x lora") is that of the cards."""
    hardware = reader.fields.get("hardware")
    if not hardware or any(item["count"] != 1 for item in hardware):
        return
    tp = reader.extra.get("gpu_count") or reader.extra.get("tp")
    if tp and len(hardware) == 1:
        hardware[0]["count"] = tp
    elif len(hardware) > 1 and (apart := _count_apart().search(reader.left)):
        for item in hardware:
            item["count"] = int(apart.group(1))
        reader.claim_range(*apart.span(1), "hardware", 0.7)


@remembered
def _count_apart() -> re.Pattern[str]:
    return re.compile(rf"{EDGE_BEFORE}{word('for')}\s(\d{{1,3}})\s?x(?=\s)(?!\s{word('more')}{EDGE_AFTER})")


def derive_lengths(reader: Reader) -> None:
    """A prompt and an answer without a context fill one together; samples of a stated length are so many tokens."""
    fields, extra = reader.fields, reader.extra
    if "context" not in fields and "input_len" in extra:
        fields["context"] = extra["input_len"] + extra.get("output_len", 0)
    training = fields.get("task") in ("fine_tuning", "training", "pretraining")
    if training and "samples" in fields and "context" in fields and extra.get("domain") in _LANGUAGE_DOMAINS:
        fields.setdefault("dataset_tokens", fields["samples"] * fields["context"])


def derive_place(reader: Reader, intent: Intent) -> None:
    """Machines that are paid by the day are rented; who pays for electricity owns them."""
    fields, extra = reader.fields, reader.extra
    if "kwh_price" in extra and "rent_per_hour" not in extra:
        fields.setdefault("location", "on_prem")
    if intent == "cost" and "hardware" in fields and "hours" in extra and "budget" not in fields:
        fields.setdefault("location", "cloud")
    if intent == "unclear" and fields.get("location") == "on_prem" and len(fields) == 1:
        del fields["location"]  # "what do I buy" says no place


def derive_alternatives(reader: Reader, intent: Intent) -> None:
    """Keeps what is compared side by side as the extra `compare`: a list of what is different in each alternative."""
    if intent not in ("compare", "cost"):
        return
    kinds = ("hardware", "model", "weights_format", "framework") if intent == "compare" else ("hardware",)
    for kind in kinds:
        several = _distinct(reader.named.get(kind, []))
        if len(several) > 1:
            hardware = reader.fields.get("hardware", ()) if kind == "hardware" else ()
            if len(hardware) == len(several):  # counts may have been settled since
                several = [{"hardware": [item]} for item in hardware]
            reader.extra["compare"] = several
            return


def _distinct(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    for item in items:
        if item not in told:
            told.append(item)
    return told
