"""Advice for a terminal: lays out bars and tables to the width at hand and leaves the words to a Jinja2 template."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bot.answers.layout import Layout, Surface
from bot.answers.money import ownership_lines, pace_text, price_text
from bot.answers.words import Words
from rules.advice.types import Advice, GibRange, Lever, Option, PlanPart, Variant

_BAR = "█"
_BAR_PARTS = " ▏▎▍▌▋▊▉"
_PLAIN_BAR = "#"
_NARROWEST_LAST_COLUMN = 24
_NO_PLAN = "plan_single"
_LEADS = {"time": ("time",), "capacity": ("capacity",), "cost": ("run_cost", "cost")}
_BESIDE = ("time", "load", "capacity", "binds", "managed", "scaling", "crossing")
_NOT_MET = ("headline_needs_more", "headline_misses_target", "headline_beyond_replicas")
_ASSUMED_BY_A_LAW = ("training_assumed", "media_assumed")


def render(
    advice: Advice,
    words: Words,
    surface: Surface,
    questions: Sequence[str] = (),
    *,
    intent: str = "",
    understood: str = "",
    remarks: Sequence[str] = (),
) -> str:
    """The answer as text: verdict, breakdown, options, levers, assumptions.

    `intent` is what was asked and decides the first line; `understood` is the workload as read, `remarks` is what is
    said beside it, `questions` are what to ask back.
    """
    view = _View(advice, words, surface, intent)
    return view.filled("terminal.j2", a=advice, questions=questions, understood=understood, remarks=remarks)


class _View(Layout):
    """What the template of an advice calls: the layout, with the advice's bars and tables."""

    def __init__(self, advice: Advice, words: Words, surface: Surface, intent: str) -> None:
        super().__init__(words, surface)
        self._advice = advice
        self._asked = intent
        self._intent = next((name for name in _LEADS.get(intent, ()) if name in advice.headlines), "")

    def verdict(self) -> str:
        """What answers the question that was asked first; the verdict on memory then follows in a line of its own."""
        lead = self._advice.headlines.get(self._intent)
        verdict = self._words.say(self._advice.verdict)
        if lead is None or self._advice.outcome == "oom":
            return self.headline(self._advice.outcome, verdict)
        outcome = self._advice.outcome if lead.message not in _NOT_MET else "oom"
        return f"{self.headline(outcome, self._words.say(lead))}\n{self.wrap(verdict)}"

    def beside(self) -> list[str]:
        """The other lines on speed, load, capacity and money."""
        told = self._advice.headlines
        names = (*_BESIDE, "cost") if self._asked == "cost" else _BESIDE
        wanted = [name for name in names if name in told and name != self._intent]
        if "load" in wanted and "time" in wanted:
            wanted.remove("time")  # the same rates
        return [self.wrap(self._words.say(told[name]), 2) for name in wanted]

    def money_lines(self) -> list[str]:
        """The working of rent or buy: the owner's sum by lines, and what moves the result most."""
        found = self._advice.rent_or_buy
        if found is None or self._asked != "cost":
            return []
        return ownership_lines(found, self._words)

    def share(self, value: float, of: float) -> str:
        """One part's GiB beside a sum of `of`: what does not show there is "<0.1"."""
        return f"<{self._words.number(0.1)}" if value < 0.05 and of >= 1 else self.gib(value)

    def span(self, need: GibRange) -> str:
        return f"{self.gib(need.expected_gib)} ({self.gib(need.low_gib)}–{self.gib(need.high_gib)})"

    def because(self) -> str:
        parts = self._advice.because
        most = max((p.gib for p in parts), default=0.0)
        return " · ".join(f"{self.part_name(p.part)} {self.share(p.gib, most)}" for p in parts)

    def part_name(self, part: str) -> str:
        label = self._words(f"part_{part}")
        return part.replace("_", " ") if label == f"part_{part}" else label

    def breakdown(self, parts: Iterable[PlanPart]) -> str:
        parts = list(parts)
        if not parts:
            return ""
        largest = max(p.gib for p in parts)
        cells = [
            (self.part_name(p.part), self.share(p.gib, largest), p, self._words.say(p.why, p.params)) for p in parts
        ]
        name_width = max(len(c[0]) for c in cells)
        gib_width = max(len(c[1]) for c in cells)
        bar_width = max(8, min(24, self._surface.width // 8))
        before = name_width + gib_width + bar_width + 8
        lines = []
        for name, gib, part, why in cells:
            bar = self._bar(part.gib / largest if largest else 0.0, bar_width)
            row = f"  {name:<{name_width}}  {gib:>{gib_width}}  {self.style(bar, 'cyan')}"
            below = self._surface.width - before < _NARROWEST_LAST_COLUMN
            first, *more = ["", *self._lines(why, 6)] if below else self._lines(why, before)
            lines.append(f"{row}  {self.style(first, 'dim')}")
            lines.extend(" " * (6 if below else before) + self.style(line, "dim") for line in more)
        return "\n".join(lines)

    def _lines(self, text: str, before: int) -> list[str]:
        """`text` in lines that fit to the right of `before` columns; at least one."""
        import textwrap

        return textwrap.wrap(text, self._surface.width - before, break_on_hyphens=False) or [""]

    def _bar(self, share: float, width: int) -> str:
        if self._surface.plain:
            return (_PLAIN_BAR * round(share * width)).ljust(width)
        eighths = round(share * width * 8)
        text = _BAR * (eighths // 8) + (_BAR_PARTS[eighths % 8] if eighths % 8 else "")
        return text.ljust(width)

    def options(self, options: Iterable[Option]) -> str:
        rows = [
            (
                self.machine(o.hardware, o.devices),
                self._words("outcome_blocked" if o.blocked is not None else f"outcome_{o.outcome}"),
                self.asked(o.outcome, o.need.expected_gib, o.usable_gib),
                self._words(f"tier_{o.tier}"),
                self._plan(o),
                pace_text(o, self._words),
                price_text(o, self._words),
                "; ".join(self._words.say(reason) for reason in o.reasons),
            )
            for o in options
        ]
        names = ("hardware", "fit", "need", "tier", "plan", "speed", "money", "why")
        head = tuple(self._words(f"column_{name}") for name in names)
        return self.table(head, rows)

    def _plan(self, option: Option) -> str:
        told = "" if option.parallelism.message == _NO_PLAN else self._words.say(option.parallelism)
        if option.replicas == 1:
            return told
        copies = self._words.say("plan_replicas", {"count": option.replicas})
        return f"{copies}, {told}" if told else copies

    def levers(self, levers: Iterable[Lever]) -> str:
        rows = [
            (
                self._words.say(f"lever_{lever.id}", lever.params),
                f"-{self._words.number(lever.saves_gib)} GiB",
                self._words(f"outcome_{lever.outcome}"),
                self._words.say(lever.price),
            )
            for lever in levers
        ]
        return self.table(tuple(self._words(f"column_{n}") for n in ("change", "saves", "then", "price")), rows)

    def variant(self, variant: Variant) -> str:
        """What changes, the GiB that it takes then, and whether that fits."""
        told = [self._words(f"outcome_{variant.outcome}")] if variant.outcome else []
        told += [self._words.say(variant.note)] if variant.note is not None else []
        beside = f" ({'; '.join(told)})" if told else ""
        return f"{self._words.say(variant.label)}: {self.gib(variant.need_gib)} GiB{beside}"

    def assumed(self) -> str:
        """Everything that was taken for granted, by the advice and by the memory laws, each field once."""
        found: dict[str, Any] = {a.field: a.value for a in self._advice.assumptions}
        for note in self._advice.warnings:
            if note.message in _ASSUMED_BY_A_LAW:
                found.setdefault(str(note.params["field"]), note.params["value"])
        return ", ".join(self._words.say(f"assumed_{field}", {"value": value}) for field, value in found.items())

    def warnings(self) -> list[str]:
        """The notes, without those that `assumed` says."""
        return [self._words.say(n) for n in self._advice.warnings if n.message not in _ASSUMED_BY_A_LAW]
