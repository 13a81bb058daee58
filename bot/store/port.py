"""The port of the store: the few operations that the rooms need, one small protocol a subject.

Every operation is atomic, also across processes that share one store. Adapters raise `bot.store.errors.StoreError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Protocol

from bot.questions.dialogue import Conversation
from bot.store.records import (
    Asked,
    ConversationKey,
    Feedback,
    Job,
    KeptStudy,
    Person,
    Retention,
    SettingsOf,
    StoreInfo,
)
from rules.cost.study import StudyMeasurement


class Conversations(Protocol):
    """The state of each conversation, until it expires."""

    def load(self, key: ConversationKey) -> Conversation | None:
        """The state; None where there is none, it has expired, or this version cannot read it."""
        ...

    def save(self, key: ConversationKey, conversation: Conversation, lasts: timedelta) -> None:
        """Keeps the state for `lasts` from now, in place of the one before."""
        ...

    def forget(self, key: ConversationKey) -> None:
        """Removes the state, if there is one."""
        ...


class Trail(Protocol):
    """Questions and answers: who asked what, where and when, and what was said."""

    def add(self, asked: Asked) -> bool:
        """Adds a row; False (and nothing changed) where its id is there already."""
        ...

    def get(self, id: str) -> Asked | None:
        """One row."""
        ...

    def of(self, who: Person, limit: int = 50) -> tuple[Asked, ...]:
        """A person's own rows, the latest first."""
        ...

    def all(self) -> Iterator[Asked]:
        """Every row, the oldest first; rows that are added meanwhile may be missing."""
        ...

    def share(self, who: Person, id: str) -> bool:
        """Marks a person's own answer as shared with the channel; False where it was, or is not theirs."""
        ...

    def delete(self, who: Person, ids: Iterable[str] | None = None) -> int:
        """Deletes a person's own rows (None: all of them, with their conversations outside threads) with the feedback
        on them; how many rows."""
        ...


class Preferences(Protocol):
    """Settings of users and channels: names and texts."""

    def get(self, owner: SettingsOf) -> Mapping[str, str]:
        """All settings of one owner."""
        ...

    def set(self, owner: SettingsOf, name: str, value: str | None) -> None:
        """Sets one; None removes it."""
        ...


class Events(Protocol):
    """Ids of deliveries, so that each is worked on once."""

    def claim(self, event_id: str) -> bool:
        """True for the first caller among all processes, False for every later one."""
        ...


class Work(Protocol):
    """Acknowledged work that is not finished. A holder that dies loses it to the next when its lease ends."""

    def put(self, id: str, kind: str, payload: Mapping[str, Any]) -> bool:
        """Adds work; False where this id was put before, finished or not. `payload` is JSON data."""
        ...

    def take(self, worker: str, lease: timedelta, kinds: Iterable[str] | None = None) -> Job | None:
        """The oldest work that nobody holds, or whose lease has ended; None where there is none."""
        ...

    def renew(self, job: Job, lease: timedelta) -> bool:
        """Holds on for `lease` from now; False where the work was lost to another."""
        ...

    def note(self, job: Job, stage: str) -> bool:
        """Leaves word for a successor; False where the work was lost to another."""
        ...

    def finish(self, job: Job, asked: Asked | None = None) -> bool:
        """Ends the work and adds `asked` to the trail, both or neither; False where the work was lost to another."""
        ...

    def put_back(self, job: Job) -> bool:
        """Gives the work up, to be taken at once; False where it was lost to another."""
        ...

    def open(self) -> int:
        """How much is waiting or held."""
        ...


class Opinions(Protocol):
    """Feedback on answers: one row a person and answer."""

    def add(self, feedback: Feedback) -> bool:
        """Keeps it; what it does not say stays as that person said it before. False where the answer is not there."""
        ...

    def on(self, answer_id: str) -> tuple[Feedback, ...]:
        """Everybody's on one answer, the oldest first."""
        ...

    def reported(self) -> tuple[tuple[Feedback, Asked], ...]:
        """What was measured or ran or did not, with the answer that it is about, the oldest first."""
        ...


class Studies(Protocol):
    """Purchase studies and their measurements."""

    def save(self, study: KeptStudy) -> None:
        """Keeps a study, in place of one with the same id; measurements that it does not hold stay."""
        ...

    def measured(self, study_id: str, measurement: StudyMeasurement) -> bool:
        """Adds a day, in place of one of the same day, machine and side; False where there is no such study."""
        ...

    def get(self, study_id: str) -> KeptStudy | None:
        """One study, its measurements by day."""
        ...

    def of(self, workspace: str) -> tuple[KeptStudy, ...]:
        """Those of a workspace, the oldest first."""
        ...

    def delete(self, study_id: str) -> bool:
        """Removes one with its measurements; False where there is none."""
        ...


class Store(Protocol):
    """All subjects of one store."""

    @property
    def conversations(self) -> Conversations:
        """States of conversations."""
        ...

    @property
    def trail(self) -> Trail:
        """Questions and answers."""
        ...

    @property
    def preferences(self) -> Preferences:
        """Settings of users and channels."""
        ...

    @property
    def events(self) -> Events:
        """Ids of deliveries."""
        ...

    @property
    def work(self) -> Work:
        """Pending work."""
        ...

    @property
    def opinions(self) -> Opinions:
        """Feedback."""
        ...

    @property
    def studies(self) -> Studies:
        """Purchase studies."""
        ...

    def info(self) -> StoreInfo:
        """What is in the store."""
        ...

    def purge(self, retention: Retention) -> Mapping[str, int]:
        """Deletes what is older than its kind is kept; rows deleted a kind. Unfinished work always stays."""
        ...

    def close(self) -> None:
        """Lets go of everything; the store is not used afterwards."""
        ...
