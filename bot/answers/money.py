"""Speed and money in words: the cells of the options table, and the working of rent or buy."""

from __future__ import annotations

from decimal import Decimal

from bot.answers.words import Words
from rules.advice.types import Option, RentOrBuy
from rules.speed.types import InferenceSpeed, TrainingSpeed

_MOST_MOVES = 3


def pace_text(option: Option, words: Words) -> str:
    """How fast an option is, in the unit of its work; empty where no law says."""
    found = option.speed
    if isinstance(found, TrainingSpeed):
        return words.say("speed_train", {"rate": found.tokens_per_s_per_device.expected * found.devices})
    if not isinstance(found, InferenceSpeed):
        return ""
    if found.decode_tok_s is not None:
        if found.concurrency > 1 and found.total_tok_s is not None:
            total = found.total_tok_s.expected * option.replicas
            return words.say("speed_streams", {"each": found.decode_tok_s.expected, "total": total})
        return words.say("speed_stream", {"rate": found.decode_tok_s.expected})
    if found.realtime_factor is not None:
        return words.say("speed_realtime", {"rate": found.realtime_factor.expected * option.replicas})
    if found.samples_s is not None:
        return words.say("speed_samples", {"rate": found.samples_s.expected * option.replicas})
    return ""


def price_text(option: Option, words: Words) -> str:
    """What an option costs: bought as listed and on the street, rented an hour; empty where no price is known."""
    cost = option.cost
    if option.kind == "own":
        return words("money_owned")
    if cost is None:
        return ""
    told = []
    rented = cost.purchase not in ("owned",)
    if not rented:
        if cost.list_price_usd is not None:
            told.append(words.say("money_list", {"usd": float(cost.list_price_usd)}))
        if cost.street_price_usd is not None:
            told.append(words.say("money_street", {"usd": float(cost.street_price_usd)}))
    if cost.quote is not None:
        params = {"usd": float(cost.quote.usd_per_hour), "provider": cost.quote.provider}
        told.append(words.say("money_hour" if rented or not told else "money_hour_from", params))
    return ", ".join(told)


def ownership_lines(found: RentOrBuy, words: Words) -> list[str]:
    """The owner's sum line by line with origins, what would move the comparison most, and what to measure first."""
    lines = []
    for line in found.own.lines:
        amount = line.amount
        params = {
            "item": words(f"cost_item_{line.item}"),
            "usd": _plain(amount.expected),
            "low": _plain(amount.low),
            "high": _plain(amount.high),
            "origin": words(f"cost_origin_{line.origin.replace(' ', '_')}"),
        }
        spread = amount.low != amount.high
        lines.append(words.say("cost_line_range" if spread else "cost_line", params))
    moves = found.break_even.sensitivity[:_MOST_MOVES]
    if moves:
        named = ", ".join(words(f"cost_move_{name}") for name, _, _ in moves)
        lines.append(words.say("cost_most_sensitive", {"moves": named}))
    lines.extend(words.say(note) for note in found.notes)
    if found.rented_rate and found.owned_rate:
        from rules.cost.study import STUDY_DAYS  # only a question of money takes the study's laws in

        lines.append(words.say("study_next", {"days": STUDY_DAYS}))
    return lines


def _plain(value: Decimal) -> float:
    return float(value)
