"""One answer, the same for every surface: what was understood, said and asked back, as text and as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bot.answers.echo import alternative_label, understood
from bot.answers.layout import Layout, Surface
from bot.answers.terminal import render
from bot.answers.words import Words
from bot.questions.dialogue import Conversation
from bot.questions.open_points import Choice
from bot.questions.parsed import Parsed
from rules.advice.types import Advice
from rules.memory.footprint import Note
from rules.records import dataclass

if TYPE_CHECKING:  # the rarer kinds of answer are imported when one is given
    from bot.answers.concepts import Explanation
    from rules.advice.compare import Comparison

_NO_ECHO = ("thanks_reply", "help_text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What was understood and what is said to it.

    `advice`, `comparison` and `explanation` are the three kinds of answer; an explanation may stand beside an advice.
    `problem` is set where there is none of them. `remarks` are sentences beside the answer, `questions` what is asked
    back (at most one), `choices` its ready answers. `conversation` is the state to keep for the next message.
    """

    parsed: Parsed
    words: Words
    conversation: Conversation
    advice: Advice | None = None
    comparison: Comparison | None = None
    explanation: Explanation | None = None
    problem: str | None = None
    problem_id: str | None = None
    remarks: tuple[Note, ...] = ()
    questions: tuple[str, ...] = ()
    choices: tuple[Choice, ...] = ()

    @property
    def answers(self) -> bool:
        """Whether something was answered, not only asked."""
        return self.advice is not None or self.comparison is not None or self.explanation is not None

    @property
    def exit_code(self) -> int:
        """0 where an answer is given, also with a question back; 3 where none is possible without one."""
        return 0 if self.answers else 3

    @property
    def understood(self) -> str:
        """The workload as understood, in one line; models by the name that the answer uses."""
        classical = self.parsed.extra.get("domain") == "classical"  # those are named by their kind, in words
        name = self.advice.model.name if self.advice is not None and not classical else None
        return understood(self.parsed, self.words, name)

    def choice_label(self, choice: Choice) -> str:
        """What a button of this choice says."""
        return self.words.say(choice.label, choice.params)

    def text(self, surface: Surface) -> str:
        """The answer for a terminal."""
        remarks = [self.words.say(note) for note in self.remarks]
        questions = self.asked
        if self.comparison is not None:
            from bot.answers.compare import comparison_text

            return comparison_text(
                self.comparison,
                self._labels(),
                self.words,
                surface,
                understood=self.understood,
                remarks=remarks,
                questions=questions,
            )
        if self.advice is not None and self.explanation is None:
            return render(
                self.advice,
                self.words,
                surface,
                questions,
                intent=self.parsed.intent,
                understood=self.understood,
                remarks=remarks,
            )
        return Layout(self.words, surface).filled(
            "plain.j2",
            headline=None,
            paragraphs=self._paragraphs(),
            remarks=remarks,
            understood="" if self.problem_id in _NO_ECHO else self.understood,
            questions=questions,
        )

    def _paragraphs(self) -> list[str]:
        if self.explanation is None:
            return [self.problem] if self.problem else []
        first, *figures = (self.words.say(note) for note in self.explanation.notes)
        told = [first, *([" ".join(figures)] if figures else [])]
        if self.advice is not None:
            told.append(self.words.say("concept_and_verdict", {"verdict": self.advice.verdict}))
        return told

    @property
    def asked(self) -> list[str]:
        """The question back with its choices: "… [Run it] [Fine-tune it]"."""
        buttons = " ".join(f"[{self.choice_label(choice)}]" for choice in self.choices)
        return [f"{question} {buttons}".strip() for question in self.questions]

    def _labels(self) -> Sequence[str]:
        return [alternative_label(change, self.words) for change in self.parsed.extra.get("compare", ())]

    def json(self) -> dict[str, Any]:
        """Everything as plain data: what was understood, the answer, what is asked back with its choices."""
        form: dict[str, Any] = {
            "understood": self.parsed.to_json() | {"text": self.understood},
            "remarks": [{"id": n.message, "params": dict(n.params), "text": self.words.say(n)} for n in self.remarks],
            "questions": list(self.questions),
            "choices": [{"id": choice.id, "text": self.choice_label(choice)} for choice in self.choices],
        }
        if self.explanation is not None:
            form["explanation"] = {
                "topic": self.explanation.topic.id,
                "requirements": list(self.explanation.topic.requirements),
                "notes": [
                    {"id": n.message, "params": dict(n.params), "text": self.words.say(n)}
                    for n in self.explanation.notes
                ],
            }
        if self.comparison is not None:
            from bot.answers.compare import comparison_json

            form["comparison"] = comparison_json(self.comparison, self._labels(), self.words)
        if self.advice is not None:
            from bot.answers.as_json import advice_json

            form["advice"] = advice_json(self.advice, self.words)
        if not self.answers:
            form["problem"] = {"id": self.problem_id, "text": self.problem}
        return form
