"""A conversation: what was understood so far, what was asked back, and what the next message means by that.

`Conversation` is a value: `hear` reads a message and says what is understood now, `after` gives the conversation with
the answer added. Surfaces keep one per thread; nothing here knows where it is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field, replace
from typing import Any, Literal

from bot.questions import numbers
from bot.questions.followup import cheaper, faster, follow, other_hardware, side_by_side
from bot.questions.lexicon import languages
from bot.questions.open_points import Choice, Point, choices_of
from bot.questions.parse import language_evidence, parse
from bot.questions.parsed import Parsed
from bot.questions.replies import bare, has_command, is_reply, picks
from bot.questions.text import clean
from rules.catalog.catalogue import Catalogue
from rules.memory.footprint import Note
from rules.policy import Policy
from rules.records import dataclass

MAX_TURNS = 50
_NUMBER = re.compile(rf"(?:\D{{0,12}}\s)?~?({numbers.NUMBER})(?:\s\D{{0,24}})?")
Kind = Literal["question", "thanks", "nothing_new"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message and what was answered: the verdict, its outcome and the GiB a device, where there was advice."""

    text: str
    verdict: Note | None = None
    outcome: str | None = None
    need_gib: float | None = None
    machine: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Heard:
    """What a message means in its conversation.

    `remarks` are said beside the answer (a correction taken, a reference that points at nothing). `kind`: a question
    to answer, thanks, or a reply that adds nothing (a "yes" to no question). `follows`: it changed the question before.
    """

    parsed: Parsed
    kind: Kind = "question"
    remarks: tuple[Note, ...] = ()
    follows: bool = False


@dataclass(frozen=True, slots=True)
class Conversation:
    """State of one thread. `asked` is the point put to the user last, `settled` the ids of all that were."""

    understood: Parsed | None = None
    asked: Point | None = None
    settled: frozenset[str] = frozenset()
    turns: tuple[Turn, ...] = field(default=())

    def hear(self, text: str, catalogue: Catalogue, policy: Policy) -> Heard:
        """Reads one message in the light of what was said before."""
        if self.understood is None:
            new = parse(text, catalogue)
            social = is_reply("thanks", text)
            empty = not social and any(is_reply(kind, text) for kind in ("yes", "no", "unsure"))
            return Heard(new, "thanks" if social else "nothing_new" if empty else "question")
        lang = self.understood.lang
        choice = self._chosen(self.asked, text) if self.asked is not None else None
        choice = choice or _unasked(choices_of(self.understood, catalogue, policy), text)
        if choice is not None:
            return Heard(choice.applied(replace(self.understood, text=text)), follows=True)
        if is_reply("thanks", text):
            return Heard(self.understood, "thanks")
        if self.asked is not None and is_reply("unsure", text):
            return Heard(self.understood, remarks=(Note("remark_assumption_stands"),), follows=True)
        if any(is_reply(kind, text) for kind in ("yes", "no", "unsure")):
            return Heard(self.understood, "nothing_new", (Note("remark_nothing_asked"),))
        if self.asked is not None and self.asked.id == "people" and (people := _just_a_number(text)):
            counted = Choice("people.counted", "", {"concurrency": people}, drop=("users",))
            return Heard(counted.applied(replace(self.understood, text=text)), follows=True)
        return self._changed(text, catalogue, lang)

    def _changed(self, text: str, catalogue: Catalogue, lang: str) -> Heard:
        assert self.understood is not None
        before = self.understood
        merged = follow(before, text, catalogue)
        if merged.parsed is not before and not merged.follows:
            return Heard(merged.parsed)
        parsed = _in_language(merged.parsed, lang)
        if has_command("versus", text) and (both := side_by_side(before, parsed)):
            return Heard(both, follows=True)
        if has_command("cheaper", text):
            found, remark = cheaper(parsed, stated="hardware" in before.fields and parsed.fields == before.fields)
            return Heard(found, remarks=(remark,), follows=True)
        if has_command("any_hardware", text):
            return Heard(other_hardware(parsed), follows=True)
        if has_command("faster", text):
            found, remark = faster(parsed)
            return Heard(found, remarks=(remark,), follows=True)
        if _same(parsed, before) and has_command("at_once", text) and (people := _only_number(text)):
            counted = Choice("people.counted", "", {"concurrency": people}, drop=("users",))
            return Heard(counted.applied(parsed), follows=True)
        if _same(parsed, before) and not merged.remarks and not merged.asks:
            return Heard(parsed, "nothing_new", (Note("remark_nothing_changed"),), follows=True)
        return Heard(parsed, remarks=merged.remarks, follows=True)

    def _chosen(self, point: Point, text: str) -> Choice | None:
        for choice in point.choices:
            if picks(choice.id, text, choice.said):
                return choice
        wanted = point.yes if is_reply("yes", text) else point.no if is_reply("no", text) else None
        if wanted is None and is_reply("yes", text) and point.choices:
            wanted = point.choices[0].id  # a yes to "this or that" means the first that was named
        return next((c for c in point.choices if c.id == wanted), None)

    def after(self, heard: Heard, turn: Turn, asked: Point | None) -> Conversation:
        """The conversation with this turn added; a message that says nothing of a workload leaves it as it was."""
        understood = heard.parsed
        if not understood.fields and self.understood is not None:
            understood = self.understood
        fresh = not heard.follows and heard.kind == "question"
        settled = frozenset() if fresh else self.settled
        if asked is not None:
            settled |= {asked.id}
        return Conversation(understood, asked, settled, (*self.turns, turn)[-MAX_TURNS:])


def _unasked(choices: Iterable[Choice], text: str) -> Choice | None:
    """The choice that a reply picks although nobody asked; a single digit is too little to mean one."""
    if len(bare(text)) < 2:
        return None
    return next((choice for choice in choices if picks(choice.id, text, choice.said)), None)


def _just_a_number(text: str) -> int | None:
    found = _NUMBER.fullmatch(bare(text))
    if found is None:
        return None
    count = int(numbers.number(found.group(1), None, decimal_comma=False))
    return count if count > 0 else None


def _only_number(text: str) -> int | None:
    """The one number of a message; None where it holds none or several."""
    found = re.findall(r"(?<![\w.,])\d{1,6}(?![\w.,]?\d|[a-z])", clean(text).folded)
    return int(found[0]) if len(found) == 1 and int(found[0]) > 0 else None


def _in_language(parsed: Parsed, lang: str) -> Parsed:
    """A short follow-up without words of its own ("8k", "LoRA") is in the language of the conversation."""
    cleaned = clean(parsed.text)
    scores = sorted(language_evidence(each, cleaned.shown, cleaned.folded) for each in languages())
    return parsed if scores[-1] > scores[-2] else replace(parsed, lang=lang)


def workload_of(parsed: Parsed) -> dict[str, Any]:
    """Everything that a question says of its workload."""
    return {**parsed.extra, **parsed.fields}


def _same(parsed: Parsed, before: Parsed) -> bool:
    return workload_of(parsed) == workload_of(before)
