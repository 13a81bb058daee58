"""`gpufit parse`: what was understood of a question, without answering it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bot.commands.batch import lines_of
from bot.commands.team import add_overrides, team_catalogue
from bot.errors import BadUsage

if TYPE_CHECKING:
    from bot.answers.words import Words
    from bot.questions.parsed import Parsed

_WIDEST = 44


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("question", nargs="*", help="the question, in plain words")
    parser.add_argument("--batch", metavar="FILE", help="many questions, one a line; - reads standard input")
    parser.add_argument("--json", action="store_true", help="print JSON (with --batch: JSON Lines)")
    parser.add_argument("--explain", action="store_true", help="also print which words gave what, and what they beat")
    add_overrides(parser)


def run(args: argparse.Namespace) -> int:
    """Prints intent, fields, what would be asked back, what is assumed; with --explain also every span."""
    if bool(args.question) == bool(args.batch):
        raise BadUsage("usage_question_or_batch")
    from bot.questions.parse import parse

    catalogue = team_catalogue(args.overrides)
    if args.question:
        parsed = parse(" ".join(args.question), catalogue, explain=args.explain)
        shown = _form(parsed, args.explain)
        print(json.dumps(shown, ensure_ascii=False, indent=2) if args.json else "\n".join(_lines(parsed, args.explain)))
        return 0
    for line in lines_of(args.batch):
        parsed = parse(line.rstrip("\n"), catalogue, explain=args.explain)
        shown = _form(parsed, args.explain)
        print(json.dumps(shown, ensure_ascii=False) if args.json else "\n".join([*_lines(parsed, args.explain), ""]))
    return 0


def _form(parsed: Parsed, explain: bool) -> dict[str, Any]:
    return parsed.to_json() | ({"text": parsed.text, "spans": parsed.spans_json()} if explain else {})


def _lines(parsed: Parsed, explain: bool) -> Iterator[str]:
    from bot.answers.words import words

    say = words(parsed.lang)
    yield from _text(parsed, say)
    if explain:
        yield ""
        yield from _table(parsed, say)


def _text(parsed: Parsed, say: Words) -> Iterator[str]:
    rows = [("intent", f"{parsed.intent} ({parsed.lang})")]
    rows += [("stated", f"{name} = {value}") for name, value in parsed.fields.items()]
    rows += [("assumed", f"{name} = {value}") for name, value in parsed.assumed.items()]
    rows += [("to_ask", name) for name in parsed.ask]
    rows += [("problem", say.say(problem.id, problem.params)) for problem in parsed.problems]
    for label, text in rows:
        yield f"{say(f'parse_{label}'):11} {text}"


def _table(parsed: Parsed, say: Words) -> Iterator[str]:
    """One row a span; what follows from other fields and has no words of its own comes last."""
    rows = [tuple(say(f"explain_{column}") for column in ("words", "field", "value", "confidence", "beat"))]
    for span in parsed.spans:
        beaten = [
            f'"{parsed.text[b.start : b.end].strip()}" '
            + say.say(f"explain_{b.why}", {"field": b.field, "value": _short(b.value), "confidence": b.confidence})
            for b in span.beat
        ]
        rows.append((span.text, span.field, _short(span.value), f"{span.confidence:.2f}", beaten[0] if beaten else ""))
        rows += [("", "", "", "", more) for more in beaten[1:]]
    said = {span.field for span in parsed.spans}
    for field, value in {**parsed.fields, **parsed.extra}.items():
        if field not in said:
            rows.append((f"({say('explain_implied')})", field, _short(value), "", ""))
    widths = [min(_WIDEST, max(len(row[i]) for row in rows)) for i in range(4)]
    for row in rows:
        cells = [cell[:width].ljust(width) for cell, width in zip(row[:4], widths, strict=True)]
        yield "  ".join([*cells, row[4]]).rstrip()


def _short(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
