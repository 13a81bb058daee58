"""Advice for a terminal: lays out bars and tables to the width at hand and leaves the words to a Jinja2 template."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bot.answers.words import Words
from rules.advice.types import Advice, GibRange, Lever, Option, PlanPart

_BAR = "█"
_BAR_PARTS = " ▏▎▍▌▋▊▉"
_PLAIN_BAR = "#"
_MARKS = {"fits": "✅", "cpu": "✅", "tight": "⚠️", "oom": "❌", "unknown": "⚠️"}
_PLAIN_MARKS = {"fits": "[yes]", "cpu": "[yes]", "tight": "[tight]", "oom": "[no]", "unknown": "[?]"}
_STYLES = {"bold": "1", "dim": "2", "green": "32", "yellow": "33", "red": "31", "cyan": "36"}
_COLOUR_OF = {"fits": "green", "cpu": "green", "tight": "yellow", "oom": "red", "unknown": "yellow"}
_NARROWEST_LAST_COLUMN = 24
_PLAIN_SIGNS = str.maketrans({"–": "-", "·": ";", "…": "..."})
_NO_PLAN = "plan_single"
_ASSUMED_BY_A_LAW = ("training_assumed", "media_assumed")


@dataclass(frozen=True, slots=True)
class Surface:
    """The terminal at hand: columns, whether it shows colour, whether only plain ASCII layout is wanted."""

    width: int = 80
    colour: bool = False
    plain: bool = False


def render(advice: Advice, words: Words, surface: Surface, questions: Sequence[str] = ()) -> str:
    """The answer as text: verdict, breakdown, options, levers, assumptions; `questions` are what to ask back."""
    view = _View(advice, words, surface)
    text: str = _template().render(a=advice, v=view, t=words, questions=questions)
    lines = [line.rstrip() for line in text.splitlines()]
    shown = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"
    return shown.translate(_PLAIN_SIGNS) if surface.plain else shown


@cache
def _template() -> Any:
    from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined

    env = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        bytecode_cache=_bytecode_cache(FileSystemBytecodeCache),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # plain text, not HTML
    )
    return env.get_template("terminal.j2")


def _bytecode_cache(kind: Any) -> Any:
    """Compiled templates in the user's own cache folder; None where none can be written."""
    try:
        return kind()
    except (OSError, RuntimeError):
        return None


class _View:
    """What the template calls: styled text, bars and tables."""

    def __init__(self, advice: Advice, words: Words, surface: Surface) -> None:
        self._advice = advice
        self._words = words
        self._surface = surface

    def style(self, text: str, *names: str) -> str:
        if not self._surface.colour or not text:
            return text
        codes = ";".join(_STYLES[name] for name in names)
        return f"\x1b[{codes}m{text}\x1b[0m"

    def mark(self, outcome: str) -> str:
        return (_PLAIN_MARKS if self._surface.plain else _MARKS)[outcome]

    def verdict(self) -> str:
        line = f"{self.mark(self._advice.outcome)} {self._words.say(self._advice.verdict)}"
        return self.style(self.wrap(line), "bold", _COLOUR_OF[self._advice.outcome])

    def wrap(self, text: str, indent: int = 0) -> str:
        """Breaks at the terminal's width; continuation lines are indented."""
        import textwrap

        start = " " * (len(text) - len(text.lstrip()))
        width = max(40, self._surface.width)
        lines = textwrap.wrap(
            text.strip(),
            width,
            initial_indent=start,
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return "\n".join(lines)

    def gib(self, value: float) -> str:
        return self._words.number(value, 1 if value >= 0.1 else 3)

    def share(self, value: float, of: float) -> str:
        """One part's GiB beside a sum of `of`: what does not show there is "<0.1"."""
        return f"<{self._words.number(0.1)}" if value < 0.05 and of >= 1 else self.gib(value)

    def span(self, need: GibRange) -> str:
        return f"{self.gib(need.expected_gib)} ({self.gib(need.low_gib)}–{self.gib(need.high_gib)})"

    def because(self) -> str:
        parts = self._advice.because
        most = max((p.gib for p in parts), default=0.0)
        return " · ".join(f"{self.part_name(p.part)} {self.share(p.gib, most)}" for p in parts)

    def machine(self, device: str | None, count: int) -> str:
        """Devices as people say them: "RTX 4090", "2 x RTX 4090"."""
        return self._words.say("machine", {"count": count, "device": device or ""})

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
            first, *more = self._beside(why, before)
            lines.append(f"{row}  {self.style(first, 'dim')}")
            lines.extend(" " * before + self.style(line, "dim") for line in more)
        return "\n".join(lines)

    def _beside(self, text: str, before: int) -> list[str]:
        """`text` in lines that fit to the right of `before` columns; at least one."""
        import textwrap

        return textwrap.wrap(
            text, max(_NARROWEST_LAST_COLUMN, self._surface.width - before), break_on_hyphens=False
        ) or [""]

    def _bar(self, share: float, width: int) -> str:
        if self._surface.plain:
            return (_PLAIN_BAR * round(share * width)).ljust(width)
        eighths = round(share * width * 8)
        text = _BAR * (eighths // 8) + (_BAR_PARTS[eighths % 8] if eighths % 8 else "")
        return text.ljust(width)

    def options(self, options: Iterable[Option]) -> str:
        rows = [
            (
                self.machine(o.hardware, o.count),
                self._words(f"outcome_{o.outcome}"),
                f"{self.gib(o.need.expected_gib)} / {self.gib(o.usable_gib)}",
                self._words(f"tier_{o.tier}"),
                "" if o.parallelism.message == _NO_PLAN else self._words.say(o.parallelism),
                "; ".join(self._words.say(reason) for reason in o.reasons),
            )
            for o in options
        ]
        head = tuple(self._words(f"column_{name}") for name in ("hardware", "fit", "need", "tier", "plan", "why"))
        return self._table(head, rows)

    def levers(self, levers: Iterable[Lever]) -> str:
        rows = [
            (
                self._words.say(f"lever_{lever.id}", lever.params),
                f"-{self.gib(lever.saves_gib)} GiB",
                self._words(f"outcome_{lever.outcome}"),
                self._words.say(lever.price),
            )
            for lever in levers
        ]
        return self._table(tuple(self._words(f"column_{n}") for n in ("change", "saves", "then", "price")), rows)

    def _table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        keep = [i for i in range(len(head)) if any(row[i] for row in rows)]
        widths = {i: max(len(head[i]), *(len(row[i]) for row in rows)) for i in keep}
        last = keep[-1]
        room = self._surface.width - 2 - sum(widths[i] + 2 for i in keep[:-1])
        below = room < widths[last]
        columns = keep[:-1] if below else keep
        lines = ["  " + self.style("  ".join(f"{head[i]:<{widths[i]}}" for i in columns).rstrip(), "dim")]
        for row in rows:
            lines.append("  " + "  ".join(f"{row[i]:<{widths[i]}}" for i in columns))
            if below and row[last]:
                lines.append(self.style(self.wrap(f"      {row[last]}", 6), "dim"))
        return "\n".join(lines)

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
