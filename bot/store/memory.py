"""The store in memory: for tests and for the playground, the same behaviour without a file."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from bot.questions.dialogue import Conversation
from bot.store.clock import Clock
from bot.store.codec import from_text, to_text
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
from rules.records import dataclass


@dataclass(slots=True)
class _Row:
    """One piece of work."""

    kind: str
    payload: str
    put_at: datetime
    attempt: int = 0
    worker: str | None = None
    lease_until: datetime | None = None
    stage: str = ""
    done_at: datetime | None = None


class MemoryStore:
    """All subjects in dictionaries behind one lock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = lock = threading.RLock()
        self.trail = MemoryTrail(lock)
        self.conversations = MemoryConversations(lock, clock)
        self.preferences = MemoryPreferences(lock)
        self.events = MemoryEvents(lock, clock)
        self.work = MemoryWork(lock, clock, self.trail)
        self.opinions = MemoryOpinions(lock, self.trail)
        self.studies = MemoryStudies(lock)
        self.trail.others = (self.conversations, self.opinions)

    def info(self) -> StoreInfo:
        """What is in the store; it takes no room on disk."""
        with self._lock:
            rows = {
                "conversations": len(self.conversations.states),
                "asked": len(self.trail.rows),
                "opinions": len(self.opinions.rows),
                "preferences": sum(map(len, self.preferences.owners.values())),
                "events": len(self.events.ids),
                "work": len(self.work.rows),
                "studies": len(self.studies.rows),
                "study_measurements": sum(len(days) for _, days in self.studies.rows.values()),
            }
            oldest = min((asked.at for asked in self.trail.rows.values()), default=None)
            return StoreInfo(version=0, size_bytes=0, rows=rows, work_open=self.work.open(), oldest=oldest)

    def purge(self, retention: Retention) -> Mapping[str, int]:
        """Deletes what is older than its kind is kept."""
        now = self._clock.now()

        def before(days: int) -> datetime:
            return now - timedelta(days=days)

        with self._lock:
            saved = before(retention.conversations_days)
            states = self.conversations.states
            old_states = [key for key, (_, at, until) in states.items() if until <= now or at < saved]
            old_opinions = [k for k, row in self.opinions.rows.items() if row.at < before(retention.feedback_days)]
            _drop(states, old_states)
            _drop(self.opinions.rows, old_opinions)
            told = {row.answer_id for row in self.opinions.rows.values() if row.reported or row.outcome}
            limit = before(retention.answers_days)
            old_asked = [id for id, row in self.trail.rows.items() if row.at < limit and id not in told]
            self.trail.drop(old_asked)
            old_events = [id for id, at in self.events.ids.items() if at < before(retention.events_days)]
            _drop(self.events.ids, old_events)
            limit = before(retention.done_work_days)
            old_work = [id for id, row in self.work.rows.items() if row.done_at is not None and row.done_at < limit]
            _drop(self.work.rows, old_work)
        return {
            "conversations": len(old_states),
            "opinions": len(old_opinions),
            "asked": len(old_asked),
            "events": len(old_events),
            "work": len(old_work),
        }

    def close(self) -> None:
        """Nothing to let go of."""


def _drop(rows: dict[Any, Any], keys: Iterable[Any]) -> None:
    for key in keys:
        del rows[key]


class MemoryConversations:
    """States of conversations."""

    def __init__(self, lock: threading.RLock, clock: Clock) -> None:
        self._lock, self._clock = lock, clock
        self.states: dict[ConversationKey, tuple[str, datetime, datetime]] = {}

    def load(self, key: ConversationKey) -> Conversation | None:
        """The state, unless it has expired."""
        with self._lock:
            found = self.states.get(key)
        return from_text(found[0], Conversation) if found and found[2] > self._clock.now() else None

    def save(self, key: ConversationKey, conversation: Conversation, lasts: timedelta) -> None:
        """Keeps the state in place of the one before."""
        now = self._clock.now()
        with self._lock:
            self.states[key] = (to_text(conversation), now, now + lasts)

    def forget(self, key: ConversationKey) -> None:
        """Removes the state."""
        with self._lock:
            self.states.pop(key, None)


class MemoryTrail:
    """Questions and answers."""

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self.rows: dict[str, Asked] = {}
        self.others: tuple[MemoryConversations, MemoryOpinions] | None = None

    def add(self, asked: Asked) -> bool:
        """Adds a row, once."""
        with self._lock:
            return self.rows.setdefault(asked.id, asked) is asked

    def get(self, id: str) -> Asked | None:
        """One row."""
        return self.rows.get(id)

    def of(self, who: Person, limit: int = 50) -> tuple[Asked, ...]:
        """A person's rows, the latest first."""
        with self._lock:
            own = [row for row in self.rows.values() if row.who == who]
        return tuple(sorted(own, key=lambda row: (row.at, row.id), reverse=True)[:limit])

    def all(self) -> Iterator[Asked]:
        """Every row, the oldest first."""
        with self._lock:
            rows = sorted(self.rows.values(), key=lambda row: (row.at, row.id))
        yield from rows

    def share(self, who: Person, id: str) -> bool:
        """Marks an answer as shared, once."""
        with self._lock:
            row = self.rows.get(id)
            if row is None or row.who != who or row.shared:
                return False
            self.rows[id] = dataclasses.replace(row, shared=True)
            return True

    def delete(self, who: Person, ids: Iterable[str] | None = None) -> int:
        """Deletes a person's own rows."""
        with self._lock:
            own = {id for id, row in self.rows.items() if row.who == who}
            wanted = own if ids is None else own & set(ids)
            self.drop(wanted)
            if ids is None and self.others is not None:
                states = self.others[0].states
                mine = [k for k in states if (k.workspace, k.kind, k.id) == (who.workspace, "user", who.user)]
                _drop(states, mine)
            return len(wanted)

    def drop(self, ids: Iterable[str]) -> None:
        """Removes rows with the feedback on them."""
        gone = set(ids)
        _drop(self.rows, gone)
        if self.others is not None:
            opinions = self.others[1].rows
            _drop(opinions, [key for key in opinions if key[0] in gone])


class MemoryPreferences:
    """Settings of users and channels."""

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self.owners: dict[SettingsOf, dict[str, str]] = {}

    def get(self, owner: SettingsOf) -> Mapping[str, str]:
        """All settings of one owner."""
        with self._lock:
            return dict(sorted(self.owners.get(owner, {}).items()))

    def set(self, owner: SettingsOf, name: str, value: str | None) -> None:
        """Sets or removes one."""
        with self._lock:
            own = self.owners.setdefault(owner, {})
            if value is None:
                own.pop(name, None)
            else:
                own[name] = value


class MemoryEvents:
    """Ids of deliveries."""

    def __init__(self, lock: threading.RLock, clock: Clock) -> None:
        self._lock, self._clock = lock, clock
        self.ids: dict[str, datetime] = {}

    def claim(self, event_id: str) -> bool:
        """Whether this caller is the first."""
        with self._lock:
            if event_id in self.ids:
                return False
            self.ids[event_id] = self._clock.now()
            return True


class MemoryWork:
    """Acknowledged work that is not finished."""

    def __init__(self, lock: threading.RLock, clock: Clock, trail: MemoryTrail) -> None:
        self._lock, self._clock, self._trail = lock, clock, trail
        self.rows: dict[str, _Row] = {}

    def put(self, id: str, kind: str, payload: Mapping[str, Any]) -> bool:
        """Adds work, once."""
        text = json.dumps(payload, allow_nan=False)
        with self._lock:
            if id in self.rows:
                return False
            self.rows[id] = _Row(kind, text, self._clock.now())
            return True

    def take(self, worker: str, lease: timedelta, kinds: Iterable[str] | None = None) -> Job | None:
        """The oldest work that is free."""
        now, wanted = self._clock.now(), None if kinds is None else set(kinds)
        with self._lock:
            for id, row in self.rows.items():
                free = row.worker is None or row.lease_until is None or row.lease_until <= now
                if row.done_at is None and free and (wanted is None or row.kind in wanted):
                    row.worker, row.lease_until, row.attempt = worker, now + lease, row.attempt + 1
                    return Job(
                        id=id,
                        kind=row.kind,
                        payload=json.loads(row.payload),
                        put_at=row.put_at,
                        attempt=row.attempt,
                        worker=worker,
                        stage=row.stage,
                    )
        return None

    def renew(self, job: Job, lease: timedelta) -> bool:
        """A longer lease, if the work is still held."""
        with self._lock:
            if (row := self._mine(job)) is None:
                return False
            row.lease_until = self._clock.now() + lease
            return True

    def note(self, job: Job, stage: str) -> bool:
        """Word for a successor, if the work is still held."""
        with self._lock:
            if (row := self._mine(job)) is None:
                return False
            row.stage = stage
            return True

    def finish(self, job: Job, asked: Asked | None = None) -> bool:
        """The end of the work and its row of the trail, together."""
        with self._lock:
            if (row := self._mine(job)) is None:
                return False
            row.done_at, row.worker, row.payload = self._clock.now(), None, "{}"
            if asked is not None:
                self._trail.add(asked)
            return True

    def put_back(self, job: Job) -> bool:
        """Lets the work go, if it is still held."""
        with self._lock:
            if (row := self._mine(job)) is None:
                return False
            row.worker = row.lease_until = None
            return True

    def open(self) -> int:
        """How much is not finished."""
        with self._lock:
            return sum(row.done_at is None for row in self.rows.values())

    def _mine(self, job: Job) -> _Row | None:
        row = self.rows.get(job.id)
        held = row is not None and row.done_at is None and (row.worker, row.attempt) == (job.worker, job.attempt)
        return row if held else None


class MemoryOpinions:
    """Feedback on answers."""

    def __init__(self, lock: threading.RLock, trail: MemoryTrail) -> None:
        self._lock, self._trail = lock, trail
        self.rows: dict[tuple[str, Person], Feedback] = {}

    def add(self, feedback: Feedback) -> bool:
        """Keeps it where the answer is still there, over what the same person said before."""
        with self._lock:
            if feedback.answer_id not in self._trail.rows:
                return False
            before = self.rows.get((feedback.answer_id, feedback.who), feedback)
            self.rows[feedback.answer_id, feedback.who] = dataclasses.replace(
                feedback,
                right=before.right if feedback.right is None else feedback.right,
                reported=feedback.reported or before.reported,
                outcome=feedback.outcome or before.outcome,
            )
            return True

    def on(self, answer_id: str) -> tuple[Feedback, ...]:
        """Everybody's on one answer."""
        with self._lock:
            return tuple(row for row in self._by_time() if row.answer_id == answer_id)

    def reported(self) -> tuple[tuple[Feedback, Asked], ...]:
        """What was measured, with its answer."""
        with self._lock:
            return tuple(
                (row, self._trail.rows[row.answer_id]) for row in self._by_time() if row.reported or row.outcome
            )

    def _by_time(self) -> list[Feedback]:
        return sorted(self.rows.values(), key=lambda row: (row.at, row.answer_id, row.who.workspace, row.who.user))


class MemoryStudies:
    """Studies and their measurements."""

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self.rows: dict[str, tuple[KeptStudy, dict[tuple[Any, ...], StudyMeasurement]]] = {}

    def save(self, study: KeptStudy) -> None:
        """Keeps a study in place of one with the same id."""
        with self._lock:
            _, days = self.rows.get(study.study.id, (study, {}))
            days |= {(one.day, one.machine, one.side): one for one in study.measurements}
            self.rows[study.study.id] = (study, days)

    def measured(self, study_id: str, measurement: StudyMeasurement) -> bool:
        """Adds a day to a study that is there."""
        with self._lock:
            if study_id not in self.rows:
                return False
            self.rows[study_id][1][measurement.day, measurement.machine, measurement.side] = measurement
            return True

    def get(self, study_id: str) -> KeptStudy | None:
        """One study."""
        with self._lock:
            if study_id not in self.rows:
                return None
            study, days = self.rows[study_id]
            return dataclasses.replace(study, measurements=tuple(days[key] for key in sorted(days)))

    def of(self, workspace: str) -> tuple[KeptStudy, ...]:
        """Those of a workspace."""
        with self._lock:
            kept = [one for id in self.rows if (one := self.get(id)) and one.who.workspace == workspace]
        return tuple(sorted(kept, key=lambda one: (one.begun, one.study.id)))

    def delete(self, study_id: str) -> bool:
        """Removes one with its measurements."""
        with self._lock:
            return self.rows.pop(study_id, None) is not None
