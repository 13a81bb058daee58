"""What every text answer is laid out with: the terminal at hand, styled and wrapped text, tables, templates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from bot.answers.words import Words
from rules.records import dataclass

_MARKS = {"fits": "✅", "cpu": "✅", "tight": "⚠️", "oom": "❌", "unknown": "⚠️"}
_PLAIN_MARKS = {"fits": "[yes]", "cpu": "[yes]", "tight": "[tight]", "oom": "[no]", "unknown": "[?]"}
_STYLES = {"bold": "1", "dim": "2", "green": "32", "yellow": "33", "red": "31", "cyan": "36"}
_COLOUR_OF = {"fits": "green", "cpu": "green", "tight": "yellow", "oom": "red", "unknown": "yellow"}
_PLAIN_SIGNS = str.maketrans({"–": "-", "·": ";", "…": "..."})


@dataclass(frozen=True, slots=True)
class Surface:
    """The terminal at hand: columns, whether it shows colour, whether only plain ASCII layout is wanted."""

    width: int = 80
    colour: bool = False
    plain: bool = False


@cache
def _templates() -> Any:
    from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        bytecode_cache=_bytecode_cache(FileSystemBytecodeCache),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # plain text, not HTML
    )


def _bytecode_cache(kind: Any) -> Any:
    """Compiled templates in the user's own cache folder; None where none can be written."""
    try:
        return kind()
    except (OSError, RuntimeError):
        return None


class Layout:
    """What templates call: styled text, wrapped lines and tables, in the words of one language."""

    def __init__(self, words: Words, surface: Surface) -> None:
        self._words = words
        self._surface = surface

    def filled(self, template: str, **values: Any) -> str:
        """The text of a template, with `v` (this layout) and `t` (its words), without idle blanks."""
        text: str = _templates().get_template(template).render(v=self, t=self._words, **values)
        lines = [line.rstrip() for line in text.splitlines()]
        shown = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"
        return shown.translate(_PLAIN_SIGNS) if self._surface.plain else shown

    def style(self, text: str, *names: str) -> str:
        if not self._surface.colour or not text:
            return text
        codes = ";".join(_STYLES[name] for name in names)
        return f"\x1b[{codes}m{text}\x1b[0m"

    def mark(self, outcome: str) -> str:
        return (_PLAIN_MARKS if self._surface.plain else _MARKS)[outcome]

    def headline(self, outcome: str, text: str) -> str:
        """The verdict line, marked and coloured by its outcome."""
        return self.style(self.wrap(f"{self.mark(outcome)} {text}"), "bold", _COLOUR_OF[outcome])

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

    def asked(self, outcome: str, need_gib: float, usable_gib: float) -> str:
        """Need beside usable memory; where it starts although more is asked than there is, that is said."""
        need, usable = self.gib(need_gib), self.gib(usable_gib)
        if outcome == "tight" and need_gib > usable_gib:
            return self._words.say("need_asked", {"need": need, "usable": usable})
        return f"{need} / {usable}"

    def gib(self, value: float) -> str:
        return self._words.number(value, 1 if value >= 0.1 else 3)

    def machine(self, device: str | None, count: int) -> str:
        """Devices as people say them: "RTX 4090", "2 x RTX 4090"."""
        return self._words.say("machine", {"count": count, "device": device or ""})

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
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
