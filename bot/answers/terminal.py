"""Advice for a terminal: lays out bars and tables to the width at hand and leaves the words to a Jinja2 template."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bot.answers.words import Words
from rules.advice.types import Advice, Assumption, GibRange, Lever, Option, PlanPart

_BAR = "█"
_BAR_PARTS = " ▏▎▍▌▋▊▉"
_PLAIN_BAR = "#"
_MARKS = {"fits": "✅", "cpu": "✅", "tight": "⚠️", "oom": "❌", "unknown": "⚠️"}
_PLAIN_MARKS = {"fits": "[yes]", "cpu": "[yes]", "tight": "[tight]", "oom": "[no]", "unknown": "[?]"}
_STYLES = {"bold": "1", "dim": "2", "green": "32", "yellow": "33", "red": "31", "cyan": "36"}
_COLOUR_OF = {"fits": "green", "cpu": "green", "tight": "yellow", "oom": "red", "unknown": "yellow"}
_NARROWEST_LAST_COLUMN = 30
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


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
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


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
            text.strip(), width, initial_indent=start, subsequent_indent=" " * indent, break_long_words=False
        )
        return "\n".join(lines)

    def gib(self, value: float) -> str:
        return self._words.number(value, 1 if value >= 0.1 else 3)

    def span(self, need: GibRange) -> str:
        return f"{self.gib(need.expected_gib)} ({self.gib(need.low_gib)}-{self.gib(need.high_gib)})"

    def because(self) -> str:
        parts = self._advice.because
        return " · ".join(f"{self.part_name(p.part)} {self.gib(p.gib)}" for p in parts)

    def part_name(self, part: str) -> str:
        label = self._words(f"part_{part}")
        return part.replace("_", " ") if label == f"part_{part}" else label

    def breakdown(self, parts: Iterable[PlanPart]) -> str:
        parts = list(parts)
        if not parts:
            return ""
        largest = max(p.gib for p in parts)
        cells = [(self.part_name(p.part), self.gib(p.gib), p, self._words.say(p.why, p.params)) for p in parts]
        name_width = max(len(c[0]) for c in cells)
        gib_width = max(len(c[1]) for c in cells)
        bar_width = max(8, min(24, self._surface.width // 5))
        room = self._surface.width - name_width - gib_width - bar_width - 8
        lines = []
        for name, gib, part, why in cells:
            bar = self._bar(part.gib / largest if largest else 0.0, bar_width)
            row = f"  {name:<{name_width}}  {gib:>{gib_width}}  {self.style(bar, 'cyan')}"
            lines.append(f"{row}  {self.style(_cut(why, room), 'dim')}")
        return "\n".join(lines)

    def _bar(self, share: float, width: int) -> str:
        if self._surface.plain:
            return (_PLAIN_BAR * round(share * width)).ljust(width)
        eighths = round(share * width * 8)
        text = _BAR * (eighths // 8) + (_BAR_PARTS[eighths % 8] if eighths % 8 else "")
        return text.ljust(width)

    def options(self, options: Iterable[Option]) -> str:
        rows = [
            (
                f"{o.count} x {o.hardware}" if o.count > 1 else o.hardware,
                self._words(f"outcome_{o.outcome}"),
                f"{self.gib(o.need.expected_gib)} / {self.gib(o.usable_gib)}",
                self._words(f"tier_{o.tier}"),
                "" if o.parallelism == "single" else o.parallelism,
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
        below = room < min(widths[last], _NARROWEST_LAST_COLUMN)
        columns = keep[:-1] if below else keep
        lines = ["  " + self.style("  ".join(f"{head[i]:<{widths[i]}}" for i in columns).rstrip(), "dim")]
        for row in rows:
            cells = [_cut(row[i], room) if i == last else f"{row[i]:<{widths[i]}}" for i in columns]
            lines.append("  " + "  ".join(cells))
            if below and row[last]:
                lines.append(self.style(self.wrap(f"      {row[last]}", 6), "dim"))
        return "\n".join(lines)

    def assumed(self, items: Iterable[Assumption]) -> str:
        texts = [self._words.say(f"assumed_{a.field}", {"value": _shown(a.value)}) for a in items]
        return ", ".join(texts)


def _shown(value: Any) -> Any:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) and value >= 1000 else value


def _cut(text: str, width: int) -> str:
    return text if len(_ANSI.sub("", text)) <= width else text[: max(1, width - 1)].rstrip() + "…"
