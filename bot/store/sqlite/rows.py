"""Rows of the trail and of feedback as records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.questions.parsed import Parsed
from bot.store.clock import from_us, to_us
from bot.store.codec import from_text, to_text
from bot.store.errors import StateUnreadable
from bot.store.records import Asked, Feedback, Person, Reported

ADD_ASKED = """insert into asked
    (id, workspace, user, channel, thread, at_us, text, answer, lang, rules, catalogue, parsed, shared)
    values (:id, :workspace, :user, :channel, :thread, :at_us, :text, :answer, :lang, :rules, :catalogue, :parsed,
    :shared) on conflict (id) do nothing"""


def of_asked(asked: Asked) -> dict[str, Any]:
    """The columns of one row of the trail."""
    return {
        "id": asked.id,
        "workspace": asked.who.workspace,
        "user": asked.who.user,
        "channel": asked.channel,
        "thread": asked.thread,
        "at_us": to_us(asked.at),
        "text": asked.text,
        "answer": asked.answer,
        "lang": asked.lang,
        "rules": asked.rules,
        "catalogue": asked.catalogue,
        "parsed": to_text(asked.parsed) if asked.parsed is not None else None,
        "shared": int(asked.shared),
    }


def to_asked(row: Mapping[str, Any]) -> Asked:
    """One row of the trail; what was understood is None where this version cannot read it."""
    parsed: Parsed | None = None
    if row["parsed"] is not None:
        try:
            parsed = from_text(row["parsed"], Parsed)
        except StateUnreadable:
            parsed = None
    return Asked(
        id=row["id"],
        who=Person(row["workspace"], row["user"]),
        channel=row["channel"],
        thread=row["thread"],
        at=from_us(row["at_us"]),
        text=row["text"],
        answer=row["answer"],
        lang=row["lang"],
        rules=row["rules"],
        catalogue=row["catalogue"],
        parsed=parsed,
        shared=bool(row["shared"]),
    )


def to_feedback(row: Mapping[str, Any]) -> Feedback:
    """One person's feedback on one answer."""
    reported = None
    if row["key"] is not None:
        reported = Reported(key=row["key"], value=row["value"], said=row["said"] or "")
    return Feedback(
        answer_id=row["answer_id"],
        who=Person(row["workspace"], row["user"]),
        at=from_us(row["at_us"]),
        right=None if row["is_right"] is None else bool(row["is_right"]),
        reported=reported,
        outcome=row["outcome"],
    )
