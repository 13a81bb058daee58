"""The SQLite store: all subjects over one file, what is in it, and what is purged."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from bot.store.clock import Clock, from_us, to_us
from bot.store.records import Retention, StoreInfo
from bot.store.sqlite.connection import BUSY_S, Connections, said
from bot.store.sqlite.migrations import version_of
from bot.store.sqlite.studies import SqliteStudies
from bot.store.sqlite.talk import SqliteConversations, SqliteOpinions, SqlitePreferences, SqliteTrail
from bot.store.sqlite.work import SqliteEvents, SqliteWork

_KINDS = ("conversations", "asked", "opinions", "preferences", "events", "work", "studies", "study_measurements")


class SqliteStore:
    """One open file. Threads share the object, processes the file."""

    def __init__(self, path: Path, clock: Clock, *, busy_s: float = BUSY_S) -> None:
        """Opens, makes or migrates the file; raises `StoreError`."""
        self._file = Connections(path, busy_s=busy_s)
        self._clock = clock
        self.conversations = SqliteConversations(self._file, clock)
        self.trail = SqliteTrail(self._file)
        self.preferences = SqlitePreferences(self._file)
        self.events = SqliteEvents(self._file, clock)
        self.work = SqliteWork(self._file, clock)
        self.opinions = SqliteOpinions(self._file)
        self.studies = SqliteStudies(self._file)

    @property
    def path(self) -> Path:
        """Where the file lies."""
        return self._file.path

    def info(self) -> StoreInfo:
        """What is in the store; bytes count the write-ahead log."""
        counts = ", ".join(f"(select count(*) from {kind}) as {kind}" for kind in _KINDS)
        (row,) = self._file.rows(f"select {counts}, (select min(at_us) from asked) as oldest_us")
        with said(self.path):
            files = [self.path, self.path.with_name(self.path.name + "-wal")]
            size = sum(file.stat().st_size for file in files if file.exists())
            version = version_of(self._file.here())
        return StoreInfo(
            version=version,
            size_bytes=size,
            rows={kind: int(row[kind]) for kind in _KINDS},
            work_open=self.work.open(),
            oldest=None if row["oldest_us"] is None else from_us(row["oldest_us"]),
        )

    def purge(self, retention: Retention) -> Mapping[str, int]:
        """Deletes what is older than its kind is kept, and gives the space back."""
        now = self._clock.now()

        def before_us(days: int) -> int:
            return to_us(now - timedelta(days=days))

        steps = {
            "conversations": (
                "delete from conversations where expires_us <= ? or saved_us < ?",
                (to_us(now), before_us(retention.conversations_days)),
            ),
            "opinions": ("delete from opinions where at_us < ?", (before_us(retention.feedback_days),)),
            "asked": (
                "delete from asked where at_us < ? and not exists (select 1 from opinions where answer_id = asked.id "
                "and (key is not null or outcome is not null))",
                (before_us(retention.answers_days),),
            ),
            "events": ("delete from events where claimed_us < ?", (before_us(retention.events_days),)),
            "work": (
                "delete from work where done_us is not null and done_us < ?",
                (before_us(retention.done_work_days),),
            ),
        }
        deleted: dict[str, int] = {}
        for kind, (sql, params) in steps.items():
            with self._file.transaction() as db:
                deleted[kind] = db.execute(sql, params).rowcount
        with said(self.path):
            db = self._file.here()
            db.execute("pragma incremental_vacuum").fetchall()
            db.execute("pragma wal_checkpoint(truncate)").fetchall()
        return deleted

    def close(self) -> None:
        """Lets go of the file."""
        self._file.close()
