"""Money in a question: a budget with currency and period; prices of electricity and of rent apart."""

from __future__ import annotations

import re

from bot.questions import numbers
from bot.questions.lexicon import EDGE_AFTER, EDGE_BEFORE, Needing, cue, remembered, source, table, word, words
from bot.questions.reader import Reader

_PRICE_WORD = re.compile(r"(?:\bat|@|\bfor|\ba|\bpor)\s?\W?$")
_SIGN_OF_THE_NUMBER_BEFORE = re.compile(r"\d\s?(?:[$€£¥₹]|[a-z]{3})\s\d[\d.,]*$")  # "1500 $ 10 horas"


@remembered
def _currencies() -> dict[str, str]:
    """Signs and words of currencies, folded as questions are."""
    sections = (table("common")["currency_signs"], table("common")["currency_words"])
    return {said: code for section in sections for code, ways in section.items() for said in ways}


@remembered
def _signs() -> tuple[str, ...]:
    """What may stand before an amount: signs, and codes."""
    signs = (s for ways in table("common")["currency_signs"].values() for s in ways)
    return (*signs, *(code.lower() for code in table("common")["currency_words"]))


@remembered
def _period() -> str:
    kinds = "|".join(f"(?P<{kind}>{word(kind)})" for kind in ("hour", "month", "year"))
    return (
        rf"(?:\s(?:(?P<monthly>{word('monthly')})|(?P<yearly>{word('yearly')})){EDGE_AFTER}|\s?(?:/|{word('per')})\s?(?:(?:{kinds}){EDGE_AFTER}|(?P<kwh>kwh)|(?P<million>(?:m|1m|million)\s?{word('tokens')}))"
        r"|\s(?P<once>one[\s\-]?time|once|de una vez|total))?"
    )


@remembered
def _amount() -> Needing:
    return Needing(
        rf"(?<![\w.,])(?P<minus>-)?\s?(?P<sign>{source(_signs())})\s?(?P<minus2>-)?(?P<n>{numbers.NUMBER})\s?(?P<k>k|m|mil)?(?![\w])"
        rf"(?:\s?\(?usd\)?)?{_period()}",
        _signs(),
    )


@remembered
def _amount_worded() -> Needing:
    return Needing(
        rf"(?<![\w.,])(?P<minus>-)?(?P<n>{numbers.NUMBER})\s?(?P<k>k|mil)?\s?\(?(?P<sign>{source(_currencies())})\)?(?![a-z0-9]){_period()}",
        tuple(_currencies()),
    )


@remembered
def _budget_alone() -> Needing:
    return Needing(
        rf"{EDGE_BEFORE}{word('budget_noun')}\s?(?:of|de|is|es|:|=|under|max|about|around)?\s?(?P<minus>-)?(?P<n>{numbers.NUMBER})"
        rf"\s?(?P<k>k|mil)?(?![\w]){_period()}",
        words("budget_noun"),
    )


@remembered
def _rent() -> Needing:
    return Needing(rf"(?<![\w.,])(?P<n>\d{{1,3}}[.,]\d{{1,4}})\s?/\s?{word('hour')}{EDGE_AFTER}", ("/",), words("hour"))


def read_money(reader: Reader) -> None:
    """Fills `budget` ({amount, currency, per}); extras `kwh_price` and `rent_per_hour`."""
    for pattern in (_amount(), _amount_worded(), _budget_alone()):
        for m in list(reader.matches(pattern, "budget")):
            taken = pattern is _amount() and _SIGN_OF_THE_NUMBER_BEFORE.search(reader.left[: m.end("n")])
            if not taken:
                _take(reader, m)
    for m in list(reader.matches(_rent())):
        reader.give_extra("rent_per_hour", numbers.number(m.group("n"), decimal_comma=True), m)


def _before(reader: Reader, m: re.Match[str]) -> str:
    """The few characters before an amount, with its sign but without its digits."""
    return reader.whole[max(0, m.start() - 5) : m.start()] + re.sub(r"\d.*", "", m.group(0)[:1])


def _take(reader: Reader, m: re.Match[str]) -> None:
    groups = m.groupdict()
    currency = _currencies().get(" ".join((groups.get("sign") or "$").split()), "USD")
    european = currency == "EUR" or reader.decimal_comma
    value = numbers.number(groups["n"], "k" if groups["k"] in ("k", "mil") else groups["k"], decimal_comma=european)
    if groups["minus"] or groups.get("minus2"):
        value = -value
    if groups["kwh"]:
        reader.extra.setdefault("currency", currency)
        reader.give_extra("kwh_price", value, m)
        return
    per = next((kind for kind in ("hour", "month", "year") if groups[kind]), "once")
    if groups["monthly"] or groups["yearly"]:
        per = "month" if groups["monthly"] else "year"
    if groups["million"]:
        per = "million_tokens"
    if per == "hour" and _PRICE_WORD.search(_before(reader, m)):
        reader.give_extra("rent_per_hour", value, m)
        return
    limit = cue("words", "money_limit").search(reader.whole[max(0, m.start() - 14) : m.start() + 1])
    budget = {"amount": numbers.tidy(value), "currency": currency, "per": per}
    if not reader.give("budget", budget, m, 0.95 if limit else 0.9):
        return
    if value <= 0:
        reader.problem("budget_not_positive", "budget", amount=numbers.tidy(value), currency=currency)
