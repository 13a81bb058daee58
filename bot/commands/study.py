"""`gpufit study`: measure before buying; the comparison of renting and owning follows what was measured."""

from __future__ import annotations

import argparse
import json
import math
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from bot.commands.team import add_overrides, folder, team_catalogue, team_policy
from bot.errors import BadUsage, NoAnswer

if TYPE_CHECKING:
    from bot.answers.words import Words
    from bot.sources.studies import KeptStudy
    from rules.cost.study import StudyResult
    from rules.policy import Policy

_HOURS_A_DAY = 24.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command and its three actions."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    start = actions.add_parser("start", help="keep the comparison that answers a question, and say what to measure")
    start.add_argument("name", help="small letters, digits and dashes")
    start.add_argument("question", nargs="+", help='for example "rent or buy for 40 h a week of 13B QLoRA"')
    add = actions.add_parser("add", help="add what was measured on one day, and compare again")
    add.add_argument("name")
    add.add_argument("--hours", type=hours, required=True, metavar="H", help="busy hours of that day, 0 to 24")
    add.add_argument("--tokens-s", type=rate, metavar="R", help="tokens a second, all devices together")
    add.add_argument("--side", choices=("rented", "owned"), default="rented", help="which machine (default: rented)")
    add.add_argument("--day", type=date.fromisoformat, metavar="YYYY-MM-DD", help="the day (default: today)")
    show = actions.add_parser("show", help="one study as it stands, or the names of all")
    show.add_argument("name", nargs="?")
    for action in (start, add, show):
        add_overrides(action)
        action.add_argument("--json", action="store_true", help="print JSON")
        action.add_argument("--lang", choices=("en", "es"), help="language of the answer (default: the question's)")


def hours(text: str) -> float:
    """Busy hours of one day; raises `ValueError` outside 0 to 24."""
    value = float(text)
    if not 0 <= value <= _HOURS_A_DAY:
        raise ValueError(text)
    return value


def rate(text: str) -> float:
    """Tokens a second; raises `ValueError` unless finite and above zero."""
    value = float(text)
    if not (math.isfinite(value) and value > 0):
        raise ValueError(text)
    return value


def run(args: argparse.Namespace) -> int:
    """Does one action and prints the study, or the names of all."""
    from bot.answers.words import words
    from bot.sources.errors import SourceError
    from bot.sources.studies import Studies

    studies = Studies(folder(args.overrides))
    policy = team_policy(args.overrides)
    try:
        if args.action == "show" and args.name is None:
            names = studies.names()
            print(json.dumps(names) if args.json else "\n".join(names) or words(args.lang or "en")("study_none"))
            return 0
        if args.action == "start":
            studies.check_new(args.name)
            kept = _asked(args, policy)
            studies.start(args.name, kept)
        elif args.action == "add":
            kept = studies.add(args.name, _measured(args, studies.load(args.name)))
        else:
            kept = studies.load(args.name)
    except SourceError as exc:
        raise BadUsage(exc.message_id, **exc.params) from exc
    _print(args, kept, policy)
    return 0


def _asked(args: argparse.Namespace, policy: Policy) -> KeptStudy:
    """The study of a question's comparison; raises `NoAnswer` where it has none, or no speeds to compare."""
    from bot.answering import answer
    from bot.sources.studies import KeptStudy
    from rules.advice.rent_or_buy import rent_or_buy
    from rules.cost.study import PurchaseStudy
    from rules.cost.unit_prices import effective_hourly

    question = " ".join(args.question)
    catalogue = team_catalogue(args.overrides)
    answered = answer(question, catalogue=catalogue, policy=policy, lang=args.lang)
    advice = answered.advice
    if advice is None:
        raise NoAnswer("study_needs_comparison")
    stated = bool(advice.workload.hardware)
    found = advice.rent_or_buy or rent_or_buy(advice.workload, advice.options, catalogue, policy, stated=stated)
    if found is None or not found.rented_rate or not found.owned_rate:
        raise NoAnswer("study_needs_comparison")
    quote = found.rent
    return KeptStudy(
        question=question,
        lang=answered.words.lang,
        rented=f"{quote.devices} x {quote.accelerator} ({quote.provider})",
        study=PurchaseStudy(
            id=args.name,
            owned=found.own,
            rent_usd_per_hour=effective_hourly(quote, policy.rental),
            assumed_hours_per_week=found.rented_hours_per_week,
            assumed_rented_tokens_s=found.rented_rate,
            assumed_owned_tokens_s=found.owned_rate,
        ),
    )


def _measured(args: argparse.Namespace, kept: KeptStudy) -> Any:
    from rules.cost.study import StudyMeasurement

    machine = kept.rented if args.side == "rented" else _owned(kept)
    return StudyMeasurement(
        day=args.day or date.today(),
        machine=machine,
        side=args.side,
        busy_hours=args.hours,
        tokens_s=args.tokens_s,
    )


def _owned(kept: KeptStudy) -> str:
    return f"{kept.study.owned.devices} x {kept.study.owned.accelerator}"


def _print(args: argparse.Namespace, kept: KeptStudy, policy: Policy) -> None:
    from bot.answers.words import words
    from rules.cost.errors import CostError
    from rules.cost.study import recompute

    try:
        result = recompute(kept.study, kept.measurements, policy)
    except CostError as exc:
        raise BadUsage(exc.note.message, **{k: str(v) for k, v in exc.note.params.items()}) from exc
    if args.json:
        print(json.dumps(_json(kept, result), ensure_ascii=False, indent=2))
    else:
        print("\n".join(_text(kept, result, words(args.lang or kept.lang))))


def _json(kept: KeptStudy, result: StudyResult) -> dict[str, Any]:
    found = result.break_even
    return {
        "name": kept.study.id,
        "question": kept.question,
        "state": result.state,
        "rented": kept.rented,
        "owned": _owned(kept),
        "days_measured": result.days_measured,
        "days_wanted": kept.study.days,
        "hours_per_week": result.hours_per_week,
        "rented_tokens_s": result.rented_tokens_s,
        "owned_tokens_s": result.owned_tokens_s,
        "measured": list(result.measured),
        "missing": list(result.missing),
        "cheaper": found.cheaper,
        "rent_usd_per_month": _exact(found.rent_usd_per_month),
        "own_usd_per_month": _exact(found.own_usd_per_month),
        "break_even_months": _exact(found.months),
        "break_even_hours_per_week": _exact(found.hours_per_week),
    }


def _exact(value: Decimal | None) -> str | None:
    return None if value is None else format(value, "f")


def _text(kept: KeptStudy, result: StudyResult, say: Words) -> list[str]:
    found, study = result.break_even, kept.study

    def origin(name: str) -> str:
        return "measured" if name in result.measured else "assumed"

    part_measured = origin("hours") == "assumed" and any(m.busy_hours > 0 for m in kept.measurements)
    params = {
        "name": study.id,
        "question": kept.question,
        "state": result.state,
        "days": result.days_measured,
        "wanted": study.days,
        "hours": result.hours_per_week,
        "hours_origin": "partly_measured" if part_measured else origin("hours"),
        "rented": kept.rented,
        "rented_rate": result.rented_tokens_s,
        "rented_origin": origin("rented_tokens_s"),
        "owned": _owned(kept),
        "owned_rate": result.owned_tokens_s,
        "owned_origin": origin("owned_tokens_s"),
        "rent_month": float(found.rent_usd_per_month),
        "own_month": float(found.own_usd_per_month),
        "months": float(found.months) if found.months is not None else 0.0,
        "break_even": float(found.hours_per_week) if found.hours_per_week is not None else 0.0,
    }
    lines = ["study_title", "study_hours", "study_speeds", f"study_cheaper_{found.cheaper}"]
    if found.months is not None and found.cheaper == "own":
        lines.append("study_pays_back")
    if found.hours_per_week is not None:
        lines.append("study_pays_from")
    lines.append(f"study_next_{result.state}")
    return [*(say.say(line, params) for line in lines[:4]), *(say.say(note) for note in found.notes),
            *(say.say(line, params) for line in lines[4:])]  # fmt: skip
