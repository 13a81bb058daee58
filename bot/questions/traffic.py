"""Load in a question: users, requests and tokens a second or a day, latency, hours a week, months, data volumes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.questions import numbers
from bot.questions.lexicon import EDGE_AFTER, EDGE_BEFORE, Needing, remembered, word, words
from bot.questions.reader import Reader

_N = rf"(?P<n>{numbers.NUMBER})"
_CONCURRENCY = r"concurrency|concurrencia|max[\s_\-]num[\s_\-]seqs"
_AROUND_THE_CLOCK = re.compile(r"(?<![\w/])24\s?(?:/|x|h\s?/?)\s?7(?![\w/])")
HOURS_A_WEEK = 168
_HOURS_A_MONTH = 730


@remembered
def _patterns() -> dict[str, Needing]:
    mag = rf"\s?(?P<mag>{numbers.magnitude_source()})?"
    tokens, per = word("tokens"), rf"\s?(?:/|{word('per')})\s?"
    count, live, under = rf"(?P<c>{numbers.count_source()})", word("concurrent"), word("under")
    many = rf"{count}(?P<mag>k|\smil)?\s?"
    sources = {
        "tokens_per_day": rf"{_N}{mag}\s?(?:de\s)?{tokens}{per}{word('day')}",
        "tok_s": rf"{_N}\+?\s?(?:{tokens}{per}{word('second')}|t/s|tps)",
        "requests_per_s": rf"{_N}{mag}\s?(?:rps|qps|{word('request')}{per}{word('second')})",
        "requests_per_minute": rf"{_N}{mag}\s?(?:rpm|{word('request')}{per}{word('minute')})",
        "requests_per_day": rf"{_N}{mag}\s?{word('request')}{per}{word('day')}",
        "dataset_tokens": rf"{_N}{mag}\s?(?:de\s|of\s)?{tokens}",
        "samples": rf"{_N}{mag}\s?(?:(?!{tokens})[a-z]{{3,12}}\s)?(?:de\s)?{word('samples')}",
        "ttft_ms": rf"(?:{word('ttft')}\s?(?:of|de|:|=|<|{under})?\s?{_N}\s?(?P<unit>ms|s|sec\w*)"
        rf"|(?P<n2>{numbers.NUMBER})\s?(?P<unit2>ms|s|sec\w*)\s{word('ttft')})",
        "latency_ms": rf"(?:{under}|{word('latency')}|@)?\s?(?:de\s)?{_N}\s?(?P<unit>ms|milisegundos|milliseconds)",
        "latency_s": rf"(?:{under})\s?{_N}\s?(?P<unit>s|secs?|seconds?|segundos?)(?!\s?/)",
        "hours_per_week": rf"{_N}\s?{word('hour')}{per}{word('week')}",
        "hours_per_day": rf"{_N}\s?{word('hour')}(?:{per}|\s){word('day')}",
        "months": rf"{count}\s?(?P<unit>{word('month')}|{word('year')})",
        "duration": rf"{count}\s?(?P<unit>{word('hour')}|{word('days')}|{word('week')}|{word('minute')})",
        "registered": rf"{_N}{mag}\s?{word('registered')}",
        "people": rf"{many}(?:[a-z]{{3,12}}\s)?(?P<who>{word('people')})(?P<live>\s?{live})?",
        "concurrent": rf"{many}(?:[a-z]{{3,16}}\s)?(?:{live})(?:\s(?:{word('people')}|{word('streams')}))?",
        "streams": rf"{many}(?:live\s)?(?:{word('streams')})(?:\s(?:{live}))?",
        "concurrency_is": rf"(?:{_CONCURRENCY})\s?(?:of|de|=|:)?\s?(?P<c>\d{{1,5}})(?P<mag>k)?",
    }
    needs: dict[str, tuple[Sequence[str], ...]] = {
        "tokens_per_day": (words("tokens"), words("day")),
        "tok_s": ((*words("tokens"), "t/s", "tps"),),
        "requests_per_s": (("rps", "qps", *words("request")),),
        "requests_per_minute": (("rpm", *words("request")), ("rpm", *words("minute"))),
        "requests_per_day": (words("request"), words("day")),
        "dataset_tokens": (words("tokens"),),
        "samples": (words("samples"),),
        "ttft_ms": (words("ttft"),),
        "latency_ms": (("ms", "miliseg", "millisec"),),
        "latency_s": (words("under"),),
        "hours_per_week": (words("hour"), words("week")),
        "hours_per_day": (words("hour"), words("day")),
        "months": (words("month", "year"),),
        "duration": (words("hour", "days", "week", "minute"),),
        "registered": (words("registered"),),
        "people": (words("people"),),
        "concurrent": (words("concurrent"),),
        "streams": (words("streams"),),
        "concurrency_is": (("concurrenc", "seqs"),),
    }
    return {key: Needing(rf"{EDGE_BEFORE}(?<!\d[.,]){text}{EDGE_AFTER}", *needs[key]) for key, text in sources.items()}


def read_traffic(reader: Reader) -> None:
    """Fills rates, latency, hours a week, months, samples, dataset tokens and concurrency."""
    p = _patterns()
    for field in ("tokens_per_day", "requests_per_s"):
        for m in list(reader.matches(p[field], field)):
            reader.give(field, _value(reader, m), m)
    for m in list(reader.matches(p["requests_per_minute"], "requests_per_s")):
        reader.give("requests_per_s", numbers.tidy(_value(reader, m) / 60), m)
    for m in list(reader.matches(p["requests_per_day"], "requests_per_day")):
        reader.give_extra("requests_per_day", _value(reader, m), m)
    for m in list(reader.matches(p["tok_s"], "tok_s")):
        reader.give_extra("tok_s", _value(reader, m), m)
    _read_latency(reader, p)
    _read_time(reader, p)
    _read_data(reader, p)
    _read_people(reader, p)


def _value(reader: Reader, m: re.Match[str]) -> float | int:
    magnitude = m.groupdict().get("mag")
    return numbers.tidy(numbers.number(m.group("n"), magnitude, decimal_comma=reader.decimal_comma))


def _read_latency(reader: Reader, p: dict[str, Needing]) -> None:
    for m in list(reader.matches(p["ttft_ms"], "ttft_ms")):
        value = numbers.number(m.group("n") or m.group("n2"))
        unit = m.group("unit") or m.group("unit2")
        reader.give_extra("ttft_ms", numbers.tidy(value * (1 if unit == "ms" else 1000)), m)
    for m in list(reader.matches(p["latency_ms"], "latency_ms")):
        reader.give("latency_ms", numbers.tidy(numbers.number(m.group("n"))), m)
    for m in list(reader.matches(p["latency_s"], "latency_ms")):
        reader.give("latency_ms", numbers.tidy(numbers.number(m.group("n")) * 1000), m, 0.7)


def _read_time(reader: Reader, p: dict[str, Needing]) -> None:
    if m := reader.search(_AROUND_THE_CLOCK):
        reader.give("hours_per_week", HOURS_A_WEEK, m)
    for m in list(reader.matches(p["hours_per_week"], "hours_per_week")):
        reader.give("hours_per_week", _value(reader, m), m)
    for m in list(reader.matches(p["hours_per_day"], "hours_per_week")):
        hours = numbers.number(m.group("n"), decimal_comma=True) * 7
        reader.give("hours_per_week", numbers.tidy(hours), m)
    for m in list(reader.matches(p["months"], "months")):
        n = numbers.count(m.group("c"))
        years = re.fullmatch(word("year"), m.group("unit")) is not None
        before = reader.left[max(0, m.start() - 4) : m.start()]
        if re.search(r"/|per\s$|por\s$|al\s$", before):
            continue
        months = n * (12 if years else 1)
        if re.search(rf"{EDGE_BEFORE}{word('within')}\s$", reader.left[max(0, m.start() - 12) : m.start()]):
            reader.give_extra("hours", months * _HOURS_A_MONTH, m, 0.7)  # a deadline, not a term
        else:
            reader.give("months", months, m, 0.8)
    for m in list(reader.matches(p["duration"], "hours")):
        unit = m.group("unit")
        factor = next(
            f for kind, f in (("hour", 1), ("days", 24), ("week", HOURS_A_WEEK), ("minute", 1 / 60))
            if re.fullmatch(word(kind), unit)
        )  # fmt: skip
        reader.give_extra("hours", numbers.tidy(numbers.count(m.group("c")) * factor), m, 0.7)


def _read_data(reader: Reader, p: dict[str, Needing]) -> None:
    for m in list(reader.matches(p["dataset_tokens"], "dataset_tokens")):
        value = _value(reader, m)
        if value >= 5_000_000 or (m.group("mag") or "k") not in ("k", "mil"):
            reader.give("dataset_tokens", value, m)
    for m in list(reader.matches(p["samples"], "samples")):
        value = _value(reader, m)
        if value >= 100:
            reader.give("samples", value, m)


def _read_people(reader: Reader, p: dict[str, Needing]) -> None:
    for m in list(reader.matches(p["registered"], "users")):
        reader.give_extra("users", _value(reader, m), m, 0.8)
    for key in ("people", "concurrent", "streams", "concurrency_is"):
        for m in list(reader.matches(p[key], "concurrency")):
            value = numbers.count(m.group("c")) * (1000 if m.group("mag") else 1)
            if value < 1:
                continue
            if key == "people" and not m.group("live"):
                reader.offer_extra("users", value, *m.span(), 0.8)
            reader.give("concurrency", value, m, 0.7 if key == "people" else 0.9)
