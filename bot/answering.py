"""One question in, one answer out: parsing, rules and words together, the same for every surface.

`answer` never raises for what a user typed: a question that cannot be answered comes back as an `Answered` without
advice, with a sentence that says what is missing or wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.answers.as_json import advice_json
from bot.answers.terminal import Surface, render
from bot.answers.words import Words, words
from bot.questions.followup import merge
from bot.questions.parse import parse
from bot.questions.parsed import Parsed
from bot.questions.workload import to_workload
from rules.advice.advise import advise
from rules.advice.types import Advice
from rules.catalog.catalogue import Catalogue
from rules.catalog.errors import CatalogError, UnknownName
from rules.memory.errors import UnsupportedWorkload
from rules.policy import Policy, default_policy


@dataclass(frozen=True, slots=True)
class Answered:
    """What was understood and what is said to it. `problem` is set where there is no advice."""

    parsed: Parsed
    words: Words
    advice: Advice | None = None
    problem: str | None = None
    problem_id: str | None = None
    questions: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 where an answer is given, also with a question back; 3 where none is possible without one."""
        return 0 if self.advice is not None else 3

    def text(self, surface: Surface) -> str:
        """The answer for a terminal."""
        if self.advice is None:
            lines = [self.problem or "", *(f"? {question}" for question in self.questions)]
            return "\n".join(line for line in lines if line) + "\n"
        return render(self.advice, self.words, surface, self.questions)

    def json(self) -> dict[str, Any]:
        """Everything as plain data: what was understood, the advice, what is asked back."""
        form: dict[str, Any] = {"understood": self.parsed.to_json(), "questions": list(self.questions)}
        if self.advice is not None:
            form["advice"] = advice_json(self.advice, self.words)
        else:
            form["problem"] = {"id": self.problem_id, "text": self.problem}
        return form


def answer(
    text: str,
    *,
    catalogue: Catalogue,
    policy: Policy | None = None,
    lang: str | None = None,
    previous: Parsed | None = None,
) -> Answered:
    """Answers one message; `previous` is what the conversation had understood before it."""
    parsed = merge(previous, text, catalogue) if previous is not None else parse(text, catalogue)
    say = words(lang or parsed.lang)
    workload = to_workload(parsed, catalogue)
    if workload is None:
        return _no_answer(parsed, say, "not_understood", {})
    if not workload.model.name and not workload.model.params_b:
        return _no_answer(parsed, say, "missing_model", {})
    try:
        advice = advise(workload, catalogue, policy or default_policy())
    except UnknownName as error:
        message = "unknown_name" if error.suggestions else "unknown_name_bare"
        return _no_answer(parsed, say, message, error.params)
    except (CatalogError, UnsupportedWorkload) as error:
        return _no_answer(parsed, say, error.message_id, error.params)
    return Answered(parsed, say, advice=advice, questions=_questions(parsed, say))


def _no_answer(parsed: Parsed, say: Words, message: str, params: Mapping[str, Any]) -> Answered:
    problems = [say.say(p.id, p.params) for p in parsed.problems if say.knows(p.id)]
    text = " ".join([*problems, say.say(message, params)])
    return Answered(parsed, say, problem=text, problem_id=message, questions=())


def _questions(parsed: Parsed, say: Words) -> tuple[str, ...]:
    """The one question that matters most, if any; the rest is assumed and said."""
    for name in parsed.ask[:1]:
        if say.knows(f"ask_{name}"):
            return (say(f"ask_{name}"),)
    return ()
