"""What a question wants to know: ordered rules over the cues of the lexicon and the fields that were read."""

from __future__ import annotations

import re

from bot.questions.lexicon import EDGE_AFTER, EDGE_BEFORE, cue, remembered, word
from bot.questions.parsed import Intent
from bot.questions.reader import Reader

_RATES = ("requests_per_s", "tokens_per_day")
_WORK = ("model", "params_b", "active_params_b", "method", "framework")
_SPEED_ASKED = re.compile(
    r"(?:^|\?\s?|\bwhat\s|\bque\s|\bhow many\s|\bcuantos\s)"
    r"(?:tok(?:ens)?/s|t/s|tps|tokens? (?:per|por) (?:second|segundo))"
)
_SPEED_LEFT = re.compile(r"(?<!\d)\s(?:tok(?:ens)?/s|t/s|tps)\s?\?")  # no figure before it


@remembered
def _leads_on() -> re.Pattern[str]:
    return re.compile(rf"[¿¡\s]{{0,3}}{word('followup')}{EDGE_AFTER}")


@remembered
def _how_many_cards() -> re.Pattern[str]:
    return re.compile(rf"{EDGE_BEFORE}(?:how many|cuantas|cuantos)\s(?:\w{{1,12}}\s){{0,2}}?(?:{word('gpu')}|\x01)")


@remembered
def _devices_apart() -> re.Pattern[str]:
    return re.compile(rf"\x01[^\x01]{{0,12}}{EDGE_BEFORE}{word('versus')}{EDGE_AFTER}[^\x01]{{0,8}}\x01")


def decide_intent(reader: Reader) -> Intent:
    """The intent; `unclear` where nothing usable was said or a stated value is impossible."""
    asks = {kind: reader.has(cue("intents", kind)) for kind in _CUES}
    fields = reader.fields
    work = any(f in fields for f in _WORK)
    if not reader.whole or (asks["help"] and not work and "hardware" not in fields):
        return "help"
    if any(p.field for p in reader.problems):
        return "unclear"
    if asks["benchmark"] and (work or "host" in fields):
        return "benchmark"
    if _costs(reader, asks):
        return "cost"
    compares = _compares(reader, asks)
    if compares and asks["compare"]:
        return "compare"
    if asks["concept"] or _capability(reader, work):
        return "concept"
    if compares:
        return "compare"
    if _takes_time(reader, asks):
        return "time"
    told = _capacity_or_recommend(reader, asks)
    if told:
        return told
    if not fields.keys() & {"model", "params_b", "hardware"} and reader.has(cue("words", "technique")):
        return "concept"
    device = "hardware" in fields or "gpu_mem_gb" in fields
    if work or ("hardware" in fields and asks["fit"]) or (device and asks["largest"]):
        return "fit"
    return "followup" if fields and _leads_on().match(reader.whole) else "unclear"


_CUES = ("help", "benchmark", "concept", "compare", "cost", "time", "capacity", "recommend", "seek", "fit", "largest")


def _several_devices(reader: Reader) -> bool:
    return len({repr(item) for item in reader.named.get("hardware", ())}) > 1


def _costs(reader: Reader, asks: dict[str, bool]) -> bool:
    if asks["cost"] or "kwh_price" in reader.extra:
        return True
    if reader.has(cue("words", "rent")) and reader.has(cue("words", "buying")):
        return True
    if "rent_per_hour" in reader.extra and "hardware" in reader.fields:
        return True
    how_much = re.search(r"\b(?:how much|cuanto)\b(?!\s(?:v?ram|mem|gpu|context))", reader.whole)
    return bool(how_much) and "hours" in reader.extra


def _capability(reader: Reader, work: bool) -> bool:
    """Whether a device can do something at all, with no model named: "can A100 run fp8 checkpoints"."""
    return not work and "weights_format" in reader.fields and "hardware" in reader.fields


def _compares(reader: Reader, asks: dict[str, bool]) -> bool:
    several = [kind for kind, items in reader.named.items() if len({repr(i) for i in items}) > 1]
    sized = reader.fields.keys() & {"model", "params_b"}
    if not several or (set(several) <= {"framework", "weights_format"} and not sized):
        return False
    if asks["compare"]:
        return True
    if several == ["weights_format"]:  # "8 or 6 bit" leaves the choice open
        return False
    return (_several_devices(reader) and reader.has(_versus())) or _devices_apart().search(reader.left) is not None


@remembered
def _versus() -> re.Pattern[str]:
    return re.compile(rf"{EDGE_BEFORE}{word('versus')}{EDGE_AFTER}")


def _takes_time(reader: Reader, asks: dict[str, bool]) -> bool:
    if asks["time"] or _SPEED_ASKED.search(reader.whole) or _SPEED_LEFT.search(reader.left):
        return True
    if "tok_s" in reader.extra and reader.has(cue("words", "normal")):
        return True
    return reader.has(cue("words", "ttft")) and "ttft_ms" not in reader.extra


def _capacity_or_recommend(reader: Reader, asks: dict[str, bool]) -> Intent | None:
    fields = reader.fields
    rates = any(f in fields for f in _RATES) or "requests_per_day" in reader.extra
    people = "users" in reader.extra
    crowd = "concurrency" in fields or people
    buying = "budget" in fields or "location" in fields
    recommends = (
        asks["recommend"]
        or (asks["seek"] and "hardware" not in fields)
        or (_how_many_cards().search(reader.left) is not None and "hardware" in fields and "context" not in fields)
    )
    if crowd and "budget" in fields and "hardware" not in fields and not asks["capacity"]:
        return "recommend"
    if asks["capacity"] or rates or (crowd and not people):
        return "capacity"
    if crowd and not (recommends and (buying or "hardware" not in fields)):
        return "capacity"
    usable = any(f in fields for f in (*_WORK, "budget", "gpu_mem_gb", "hardware", "concurrency"))
    if (recommends or ("budget" in fields and "hardware" not in fields)) and usable:
        return "recommend"
    return None
