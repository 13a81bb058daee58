"""`--explain`: each rule that fired with its figures, each option with its reason, and what a team's rules keep out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bot.answers.layout import Layout, Surface
from bot.answers.words import Words
from rules.advice.types import Advice, Excluded, Option
from rules.memory.footprint import Note


def explained(advice: Advice, words: Words, surface: Surface) -> str:
    """The working of an answer as text, each line with the ids of its rule and requirement."""
    layout = Layout(words, surface)
    parts = (
        ("explain_lines", _lines(advice, words)),
        ("explain_fired", [_fired(f.rule, f.requirement, f.figures, words) for f in advice.fired]),
        ("explain_options", [line for option in advice.options for line in _option(option, layout, words)]),
        ("explain_excluded", _excluded(advice.excluded, layout, words)),
    )
    shown = []
    for heading, lines in parts:
        told = [layout.wrap(f"  {line}", 4) for line in lines] or [f"  {words('explain_none')}"]
        shown.append("\n".join([layout.style(words(heading), "bold"), *told]))
    return "\n\n".join(shown) + "\n"


def _lines(advice: Advice, words: Words) -> list[str]:
    """The sentences that answer, by id: the verdict, then those on time, load and money."""
    notes = [("verdict", advice.verdict), *advice.headlines.items()]
    return [_fired(note.message, note.requirement or "", note.params, words, name) for name, note in notes]


def _fired(rule: str, requirement: str, figures: Mapping[str, Any], words: Words, name: str = "") -> str:
    told = ", ".join(f"{key} {_value(value, words)}" for key, value in figures.items())
    served = f" ({requirement})" if requirement else ""
    return f"{f'{name}: ' if name else ''}{rule}{served}{f': {told}' if told else ''}"


def _value(value: Any, words: Words) -> str:
    if isinstance(value, Note):
        return words.say(value)
    if isinstance(value, float):
        return words.say("explain_figure", {"value": value})
    return str(value)


def _option(option: Option, layout: Layout, words: Words) -> Iterator[str]:
    machine = layout.machine(option.hardware, option.devices)
    yield f"{machine}: {_reasons(option.reasons, words) or option.rule or words('explain_none')}"
    yield from (f"- {_reasons((note,), words)}" for note in option.warnings)


def _reasons(notes: Sequence[Note], words: Words) -> str:
    return "; ".join(f"{n.message}{f' ({n.requirement})' if n.requirement else ''}: {words.say(n)}" for n in notes)


def _excluded(found: Sequence[Excluded], layout: Layout, words: Words) -> list[str]:
    """One line for each constraint and certainty, with all that it keeps out or may keep out."""
    groups: dict[tuple[str, str, bool], list[str]] = {}
    for each in found:
        key = (each.constraint, each.reason, each.certain)
        groups.setdefault(key, []).append(layout.machine(each.hardware, each.count))
    lines = []
    for (constraint, reason, certain), machines in groups.items():
        params = {"constraint": constraint, "reason": reason, "machines": ", ".join(machines)}
        lines.append(words.say(_EXCLUDED[certain, bool(reason)], params))
    return lines


_EXCLUDED = {
    (True, True): "explain_kept_out",
    (True, False): "explain_kept_out_bare",
    (False, True): "explain_uncertain",
    (False, False): "explain_uncertain_bare",
}
