"""What is stored, as plain records. Moments are UTC; ids of people and channels are the chat platform's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any, Literal

from bot.questions.parsed import Parsed
from rules.cost.study import PurchaseStudy, StudyMeasurement
from rules.records import dataclass


@dataclass(frozen=True, slots=True)
class Person:
    """A user of one workspace."""

    workspace: str
    user: str


@dataclass(frozen=True, slots=True)
class ConversationKey:
    """Where a conversation goes on: a thread of a channel, or, without one, a user in a channel."""

    workspace: str
    channel: str
    kind: Literal["thread", "user"]
    id: str

    @classmethod
    def of(cls, who: Person, channel: str, thread: str | None) -> ConversationKey:
        """The thread where there is one (all who write in it share the state), else the user in the channel."""
        if thread:
            return cls(who.workspace, channel, "thread", thread)
        return cls(who.workspace, channel, "user", who.user)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question and its answer in the audit trail.

    `text` is what the person wrote and `answer` what was said, `parsed` what was understood (None: nothing was), and
    `rules` and `catalogue` are the versions that gave the answer.
    """

    id: str
    who: Person
    channel: str
    at: datetime
    text: str
    answer: str
    lang: str
    rules: str
    catalogue: str
    thread: str | None = None
    parsed: Parsed | None = None
    shared: bool = False


@dataclass(frozen=True, slots=True)
class SettingsOf:
    """Whose settings: a user's or a channel's."""

    workspace: str
    kind: Literal["user", "channel"]
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Pending work that was taken: `attempt` counts how often it was taken, this time included.

    `stage` is what the holder before noted last ("posting"), so that its successor can tell an answer that may have
    gone out from one that has not.
    """

    id: str
    kind: str
    payload: Mapping[str, Any]
    put_at: datetime
    attempt: int
    worker: str
    stage: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """A measured figure: `key` is a key of `measured` of the case format, `said` the person's words."""

    key: str
    value: float
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """What a person said of an answer: whether it was right, what was measured, whether the workload ran."""

    answer_id: str
    who: Person
    at: datetime
    right: bool | None = None
    reported: Reported | None = None
    outcome: Literal["fits", "oom"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptStudy:
    """A purchase study with the measurements that have arrived."""

    study: PurchaseStudy
    who: Person
    begun: datetime
    measurements: tuple[StudyMeasurement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How many days each kind is kept; a person's own settings and purchase studies stay until they are deleted.

    An answer on which a figure was reported stays as long as that feedback, which is nothing without it.
    """

    answers_days: int = 365
    conversations_days: int = 30
    events_days: int = 7
    done_work_days: int = 7
    feedback_days: int = 1095


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreInfo:
    """What is in the store: version of the schema, bytes on disk, rows a kind, work waiting, the oldest question."""

    version: int
    size_bytes: int
    rows: Mapping[str, int] = field(default_factory=dict)
    work_open: int = 0
    oldest: datetime | None = None
