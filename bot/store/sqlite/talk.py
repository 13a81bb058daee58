"""Conversations, the audit trail, settings and feedback in SQLite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from bot.questions.dialogue import Conversation
from bot.store.clock import Clock, to_us
from bot.store.codec import from_text, to_text
from bot.store.errors import StateUnreadable
from bot.store.records import Asked, ConversationKey, Feedback, Person, SettingsOf
from bot.store.sqlite.connection import Connections
from bot.store.sqlite.rows import ADD_ASKED, of_asked, to_asked, to_feedback
from rules.records import dataclass

_PAGE = 500
_KEY = "workspace = :workspace and channel = :channel and kind = :kind and id = :id"
_OWNER = "workspace = :workspace and kind = :kind and id = :id"


@dataclass(frozen=True, slots=True)
class SqliteConversations:
    """States of conversations."""

    file: Connections
    clock: Clock

    def load(self, key: ConversationKey) -> Conversation | None:
        """The state, unless it has expired or cannot be read."""
        sql = f"select state from conversations where {_KEY} and expires_us > :now_us"
        found = self.file.rows(sql, **_of_key(key), now_us=to_us(self.clock.now()))
        try:
            return from_text(found[0]["state"], Conversation) if found else None
        except StateUnreadable:
            return None

    def save(self, key: ConversationKey, conversation: Conversation, lasts: timedelta) -> None:
        """Keeps the state in place of the one before."""
        now = self.clock.now()
        row: dict[str, Any] = {**_of_key(key), "state": to_text(conversation)}
        row |= {"saved_us": to_us(now), "expires_us": to_us(now + lasts)}
        with self.file.transaction() as db:
            db.execute(
                """insert into conversations values
                (:workspace, :channel, :kind, :id, :state, :saved_us, :expires_us) on conflict do update set
                state = excluded.state, saved_us = excluded.saved_us, expires_us = excluded.expires_us""",
                row,
            )

    def forget(self, key: ConversationKey) -> None:
        """Removes the state."""
        with self.file.transaction() as db:
            db.execute(f"delete from conversations where {_KEY}", _of_key(key))


@dataclass(frozen=True, slots=True)
class SqliteTrail:
    """Questions and answers."""

    file: Connections

    def add(self, asked: Asked) -> bool:
        """Adds a row, once."""
        with self.file.transaction() as db:
            return db.execute(ADD_ASKED, of_asked(asked)).rowcount == 1

    def get(self, id: str) -> Asked | None:
        """One row."""
        found = self.file.rows("select * from asked where id = :id", id=id)
        return to_asked(found[0]) if found else None

    def of(self, who: Person, limit: int = 50) -> tuple[Asked, ...]:
        """A person's rows, the latest first."""
        sql = """select * from asked where workspace = :workspace and user = :user
            order by at_us desc, id desc limit :limit"""
        return tuple(map(to_asked, self.file.rows(sql, workspace=who.workspace, user=who.user, limit=limit)))

    def all(self) -> Iterator[Asked]:
        """Every row, the oldest first, a page at a time so that nothing is held open between."""
        sql = "select * from asked where (at_us, id) > (:at_us, :id) order by at_us, id limit :page"
        at_us, id = -(2**62), ""
        while found := self.file.rows(sql, at_us=at_us, id=id, page=_PAGE):
            yield from map(to_asked, found)
            at_us, id = found[-1]["at_us"], found[-1]["id"]

    def share(self, who: Person, id: str) -> bool:
        """Marks an answer as shared, once."""
        sql = "update asked set shared = 1 where id = ? and workspace = ? and user = ? and not shared"
        with self.file.transaction() as db:
            return db.execute(sql, (id, who.workspace, who.user)).rowcount == 1

    def delete(self, who: Person, ids: Iterable[str] | None = None) -> int:
        """Deletes a person's own rows."""
        own = "from asked where workspace = ? and user = ?"
        with self.file.transaction() as db:
            if ids is None:
                db.execute(
                    "delete from conversations where workspace = ? and kind = 'user' and id = ?",
                    (who.workspace, who.user),
                )
                return db.execute(f"delete {own}", (who.workspace, who.user)).rowcount
            each = (db.execute(f"delete {own} and id = ?", (who.workspace, who.user, id)) for id in ids)
            return sum(done.rowcount for done in each)


@dataclass(frozen=True, slots=True)
class SqlitePreferences:
    """Settings of users and channels."""

    file: Connections

    def get(self, owner: SettingsOf) -> Mapping[str, str]:
        """All settings of one owner."""
        sql = f"select name, value from preferences where {_OWNER} order by name"
        return {row["name"]: row["value"] for row in self.file.rows(sql, **_of_owner(owner))}

    def set(self, owner: SettingsOf, name: str, value: str | None) -> None:
        """Sets or removes one."""
        row = _of_owner(owner) | {"name": name}
        with self.file.transaction() as db:
            if value is None:
                db.execute(f"delete from preferences where {_OWNER} and name = :name", row)
            else:
                db.execute(
                    """insert into preferences values (:workspace, :kind, :id, :name, :value)
                    on conflict do update set value = excluded.value""",
                    row | {"value": value},
                )


@dataclass(frozen=True, slots=True)
class SqliteOpinions:
    """Feedback on answers."""

    file: Connections

    def add(self, feedback: Feedback) -> bool:
        """Keeps it where the answer is still there, over what the same person said before."""
        told = feedback.reported
        row = {
            "answer_id": feedback.answer_id,
            "workspace": feedback.who.workspace,
            "user": feedback.who.user,
            "at_us": to_us(feedback.at),
            "is_right": None if feedback.right is None else int(feedback.right),
            "key": told.key if told else None,
            "value": told.value if told else None,
            "said": told.said if told else None,
            "outcome": feedback.outcome,
        }
        with self.file.transaction() as db:
            done = db.execute(
                """insert into opinions
                select :answer_id, :workspace, :user, :at_us, :is_right, :key, :value, :said, :outcome
                where exists (select 1 from asked where id = :answer_id)
                on conflict do update set at_us = excluded.at_us,
                is_right = coalesce(excluded.is_right, is_right), outcome = coalesce(excluded.outcome, outcome),
                value = case when excluded.key is null then value else excluded.value end,
                said = case when excluded.key is null then said else excluded.said end,
                key = coalesce(excluded.key, key)""",
                row,
            )
            return done.rowcount == 1

    def on(self, answer_id: str) -> tuple[Feedback, ...]:
        """Everybody's on one answer."""
        sql = "select * from opinions where answer_id = :id order by at_us, workspace, user"
        return tuple(map(to_feedback, self.file.rows(sql, id=answer_id)))

    def reported(self) -> tuple[tuple[Feedback, Asked], ...]:
        """What was measured, with its answer."""
        sql = """select * from opinions where key is not null or outcome is not null
            order by at_us, answer_id, workspace, user"""
        told = [to_feedback(row) for row in self.file.rows(sql)]
        sql = "select * from asked where id in (select answer_id from opinions)"
        answers = {row["id"]: to_asked(row) for row in self.file.rows(sql)}
        return tuple((each, answers[each.answer_id]) for each in told if each.answer_id in answers)


def _of_key(key: ConversationKey) -> dict[str, str]:
    return {"workspace": key.workspace, "channel": key.channel, "kind": key.kind, "id": key.id}


def _of_owner(owner: SettingsOf) -> dict[str, str]:
    return {"workspace": owner.workspace, "kind": owner.kind, "id": owner.id}
