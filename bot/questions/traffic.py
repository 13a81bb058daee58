"""Load in a question: users, requests and tokens a second or a day, latency, hours a week, months, data volumes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.questions import numbers
from bot.questions.lexicon import EDGE_AFTER, EDGE_BEFORE, Needing, remembered, word, words
from bot.questions.reader import Reader
from rules.units import HOURS_PER_WEEK

_N = rf"(?P<n>{numbers.NUMBER})"
_HOURS_A_MONTH = 730
_DAYS_A_MONTH = 30.4
_CONCURRENCY = r"concurrency|concurrencia|max[\s_\-]num[\s_\-]seqs"
_AROUND_THE_CLOCK = re.compile(r"(?<![\w/])24\s?(?:/|x|h\s?/?)\s?7(?![\w/])")


def per(unit: str) -> str:
    """Pattern source of "per `unit`", with a stroke or a word."""
    return rf"(?:\s?/\s?|\s{word('per')}\s){unit}"


@remembered
def _patterns() -> dict[str, Needing]:
    mag = rf"\s?(?P<mag>{numbers.magnitude_source()})?"
    tokens, amount = word("tokens"), numbers.amount_source()
    count, live, under = rf"(?P<c>{numbers.count_source()})", word("concurrent"), word("under")
    many = rf"{count}(?P<mag>k|\smil)?\s?"
    some = rf"{amount}{mag}\s?(?:(?:de|of|daily|diarios|diarias)\s)?"
    day, month, hour = word("day"), word("month"), word("hour")
    ms = r"(?:ms|milisegundos|milliseconds|millis)"
    sources = {
        "tokens_per_day": rf"{some}{tokens}(?:{per(day)}|\s{word('daily')})",
        "tokens_per_minute": rf"{some}{tokens}{per(word('minute'))}",
        "tokens_per_hour": rf"{some}{tokens}{per(hour)}",
        "tokens_per_month": rf"{some}{tokens}{per(month)}",
        "tok_s": rf"{_N}\+?\s?(?:{tokens}{per(word('second'))}|t/s|tps)",
        "requests_per_s": rf"{_N}{mag}\s?(?:rps|qps|{word('served')}{per(word('second'))})",
        "requests_per_minute": rf"{_N}{mag}\s?(?:rpm|{word('served')}{per(word('minute'))})",
        "requests_per_hour": rf"{some}{word('request')}{per(hour)}",
        "requests_per_day": rf"{some}{word('served')}(?:{per(day)}|\s{word('daily')})",
        "requests_per_month": rf"{some}{word('request')}{per(month)}",
        "dataset_tokens": rf"{amount}{mag}[\s\-]?(?:de\s|of\s)?{tokens}",
        "dataset_gb": rf"(?:{_N}\s?(?P<unit>tb|gb|mb)\s(?:of\s|de\s)?(?:[a-z]{{3,10}}\s)?{word('dataset')}"
        rf"|{word('dataset')}\s(?:of\s|de\s)?(?P<n2>{numbers.NUMBER})\s?(?P<unit2>tb|gb|mb))",
        "audio_hours": rf"{some}{hour}\s(?:of\s|de\s)?{word('audio')}",
        "samples": rf"{_N}{mag}[\s\-]?(?:(?!{tokens})[a-z]{{3,12}}\s)?(?:de\s)?{word('samples')}",
        "ttft_ms": rf"(?:{word('ttft')}\s?(?:of|de|:|=|<|{under})?\s?{_N}\s?(?P<unit>{ms}|s|sec\w*|seg\w*)"
        rf"|(?:(?P<n2>{numbers.NUMBER})|(?P<half>{word('half')})(?=\s))\s?(?P<unit2>{ms}|s|sec\w*|seg\w*)"
        rf"\s(?:{word('filler')}\s){{0,3}}{word('ttft')})",
        "latency_ms": rf"(?:{under}|{word('latency')}|@)?\s?(?:de\s)?{_N}\s?(?P<unit>{ms})",
        "latency_s": rf"(?:{under})\s?(?:{_N}|(?P<half>{word('half')})(?=\s))\s?"
        r"(?P<unit>s|secs?|seconds?|segundos?|seg)(?!\s?/)",
        "latency_is": rf"{word('latency_noun')}(?:\s{word('filler')}|\s{under}){{0,3}}\s?[:=<]?\s?"
        rf"{_N}\s?(?P<unit>s|secs?|seconds?|segundos?|seg)",
        "hours_per_week": rf"{_N}\s?{hour}(?:{per(word('week'))}|\s{word('weekly')})",
        "hours_per_day": rf"{_N}\s?{hour}(?:{per(word('day'))}|\s{word('day')}|\s{word('daily')})"
        rf"(?:[\s,x]{{1,3}}(?P<days>[1-7])\s?{word('days')}(?:{per(word('week'))})?)?",
        "always": rf"{word('always')}",
        "months": rf"{count}\s?(?P<unit>{month}|{word('year')})",
        "duration": rf"{count}\s?(?P<unit>{hour}|{word('days')}|{word('week')}|{word('minute')})",
        "registered": rf"{_N}{mag}\s?(?:(?!{word('concurrent')})[a-z]{{3,12}}\s)?{word('registered')}",
        "share": rf"(?P<n>\d{{1,3}}(?:[.,]\d)?)\s?(?:%|percent|por\sciento)"
        rf"\s(?:(?:{word('filler')}|{word('people')})\s){{0,3}}(?:{word('concurrent')}|{word('active')})",
        "people": rf"(?P<minus>(?<!\S)-)?{many}(?:(?P<so>{live})\s|[a-z]{{3,12}}\s)?(?P<who>{word('people')})"
        rf"(?P<live>\s?{live})?",
        "team": rf"{word('team')}\s(?:of|de)\s(?:around\s|about\s|unas\s|unos\s|~\s?)?{count}(?P<mag>k)?",
        "concurrent": rf"{many}(?:[a-z]{{3,16}}\s)?(?:{live})(?:\s(?:{word('people')}|{word('streams')}))?"
        r"(?!\s?[:=]?\s?\d)",
        "streams": rf"{many}(?:live\s)?(?:{word('streams')})(?:\s(?:{live}))?(?!\s{word('filler')}\s\d)",
        "concurrency_is": rf"(?:{_CONCURRENCY})\s?(?:of|de|=|:)?\s?(?P<c>\d{{1,5}})(?P<mag>k)?",
    }
    needs: dict[str, tuple[Sequence[str], ...]] = {
        "tokens_per_day": (words("tokens"), words("day", "daily")),
        "tokens_per_minute": (words("tokens"), words("minute")),
        "tokens_per_hour": (words("tokens"), words("hour")),
        "tokens_per_month": (words("tokens"), words("month")),
        "tok_s": ((*words("tokens"), "t/s", "tps"),),
        "requests_per_s": (("rps", "qps", *words("served")),),
        "requests_per_minute": (("rpm", *words("served")), ("rpm", *words("minute"))),
        "requests_per_hour": (words("request"), words("hour")),
        "requests_per_day": (words("served"), words("day", "daily")),
        "requests_per_month": (words("request"), words("month")),
        "dataset_tokens": (words("tokens"),),
        "dataset_gb": (words("dataset"), ("gb", "tb", "mb")),
        "audio_hours": (words("audio"), words("hour")),
        "samples": (words("samples"),),
        "ttft_ms": (words("ttft"),),
        "latency_ms": (("ms", "miliseg", "millis"),),
        "latency_s": (words("under"),),
        "latency_is": (words("latency_noun"),),
        "hours_per_week": (words("hour"), words("week", "weekly")),
        "hours_per_day": (words("hour"), words("day", "daily")),
        "always": (words("always"),),
        "months": (words("month", "year"),),
        "duration": (words("hour", "days", "week", "minute"),),
        "registered": (words("registered"),),
        "share": (("%", "percent", "por ciento"),),
        "people": (words("people"),),
        "team": (words("team"),),
        "concurrent": (words("concurrent"),),
        "streams": (words("streams"),),
        "concurrency_is": (("concurrenc", "seqs"),),
    }
    return {key: Needing(rf"{EDGE_BEFORE}(?<!\d[.,]){text}{EDGE_AFTER}", *needs[key]) for key, text in sources.items()}


# Rates: pattern, field, and what a unit of the pattern is of the field's.
_RATES = (
    ("tokens_per_day", "tokens_per_day", 1.0),
    ("tokens_per_minute", "tokens_per_day", 1440.0),
    ("tokens_per_hour", "tokens_per_day", 24.0),
    ("tokens_per_month", "tokens_per_day", 1 / _DAYS_A_MONTH),
    ("requests_per_s", "requests_per_s", 1.0),
    ("requests_per_minute", "requests_per_s", 1 / 60),
    ("requests_per_hour", "requests_per_s", 1 / 3600),
)
_RATES_APART = (
    ("requests_per_day", "requests_per_day", 1.0),
    ("requests_per_month", "requests_per_day", 1 / _DAYS_A_MONTH),
    ("tok_s", "tok_s", 1.0),
    ("audio_hours", "audio_hours", 1.0),
)


def read_traffic(reader: Reader) -> None:
    """Fills rates, latency, hours a week, months, samples, dataset tokens and concurrency."""
    p = _patterns()
    for key, field, share in _RATES:
        for m in list(reader.matches(p[key], field)):
            reader.give(field, numbers.tidy(_value(reader, m) * share), m)
    for key, field, share in _RATES_APART:
        for m in list(reader.matches(p[key], field)):
            reader.give_extra(field, numbers.tidy(_value(reader, m) * share), m)
    _read_latency(reader, p)
    _read_time(reader, p)
    _read_data(reader, p)
    _read_people(reader, p)


def _value(reader: Reader, m: re.Match[str]) -> float | int:
    groups = m.groupdict()
    magnitude = groups.get("mag")
    if "n_word" in groups:
        return numbers.tidy(numbers.amount(m, "n", magnitude, reader.decimal_comma))
    return numbers.tidy(numbers.number(m.group("n"), magnitude, decimal_comma=reader.decimal_comma))


def _read_latency(reader: Reader, p: dict[str, Needing]) -> None:
    for m in list(reader.matches(p["ttft_ms"], "ttft_ms")):
        value = _seconds(reader, m, m.group("n") or m.group("n2"))
        unit = m.group("unit") or m.group("unit2")
        reader.give_extra("ttft_ms", numbers.tidy(value * (1 if unit.startswith("m") else 1000)), m)
    for m in list(reader.matches(p["latency_ms"], "latency_ms")):
        value = numbers.number(m.group("n"), decimal_comma=reader.decimal_comma)
        reader.give("latency_ms", numbers.tidy(value), m)
    for key in ("latency_s", "latency_is"):
        for m in list(reader.matches(p[key], "latency_ms")):
            value = _seconds(reader, m, m.group("n")) * 1000
            reader.give("latency_ms", numbers.tidy(value), m, 0.7)


def _seconds(reader: Reader, m: re.Match[str], figure: str | None) -> float:
    """A figure, or half of one where the words say so."""
    return 0.5 if figure is None else numbers.number(figure, decimal_comma=reader.decimal_comma)


def _read_time(reader: Reader, p: dict[str, Needing]) -> None:
    if m := reader.search(_AROUND_THE_CLOCK):
        reader.give("hours_per_week", HOURS_PER_WEEK, m)
    for m in list(reader.matches(p["hours_per_week"], "hours_per_week")):
        reader.give("hours_per_week", _value(reader, m), m)
    for m in list(reader.matches(p["always"], "hours_per_week")):
        reader.give("hours_per_week", HOURS_PER_WEEK, m, 0.8)
    for m in list(reader.matches(p["hours_per_day"], "hours_per_week")):
        hours = numbers.number(m.group("n"), decimal_comma=True) * int(m.group("days") or 7)
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
            f for kind, f in (("hour", 1), ("days", 24), ("week", HOURS_PER_WEEK), ("minute", 1 / 60))
            if re.fullmatch(word(kind), unit)
        )  # fmt: skip
        reader.give_extra("hours", numbers.tidy(numbers.count(m.group("c")) * factor), m, 0.7)


def _read_data(reader: Reader, p: dict[str, Needing]) -> None:
    for m in list(reader.matches(p["dataset_gb"], "dataset_gb")):
        value = numbers.number(m.group("n") or m.group("n2"), decimal_comma=reader.decimal_comma)
        scale = {"tb": 1000.0, "gb": 1.0, "mb": 0.001}[m.group("unit") or m.group("unit2")]
        reader.give_extra("dataset_gb", numbers.tidy(value * scale), m)
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
        reader.give_extra("users", _value(reader, m), m, 0.85)
    for m in list(reader.matches(p["share"], "active_share")):
        reader.give_extra("active_share", numbers.number(m.group("n"), decimal_comma=True) / 100, m)
    for key in ("people", "team", "concurrent", "streams", "concurrency_is"):
        for m in list(reader.matches(p[key], "concurrency")):
            groups = m.groupdict()
            value = numbers.count(m.group("c")) * (1000 if groups["mag"] else 1)
            value = -value if groups.get("minus") else value
            if value < 0 or (value == 0 and key == "people"):
                reader.problem("people_not_positive", "concurrency", people=value)
                reader.give("concurrency", value, m)
                continue
            if value < 1 or m.group("c") in words("article"):  # "behind an API, concurrency 8" counts nobody
                continue
            heads = key == "team" or (key == "people" and not (groups["live"] or groups["so"]))
            if heads:
                reader.offer_extra("users", value, *m.span(), 0.8)
            reader.give("concurrency", value, m, 0.7 if heads else 0.9)
    users, share = reader.extra.get("users"), reader.extra.get("active_share")
    if users and share and reader.fields.get("concurrency") in (None, users):
        reader.fields["concurrency"] = max(1, round(users * share))
