"""Claims and pending work in SQLite: each is one immediate transaction, so that two processes never share one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from bot.store.clock import Clock, from_us, to_us
from bot.store.records import Asked, Job
from bot.store.sqlite.connection import Connections
from bot.store.sqlite.rows import ADD_ASKED, of_asked
from rules.records import dataclass

_MINE = "id = :id and attempt = :attempt and worker = :worker and done_us is null"


@dataclass(frozen=True, slots=True)
class SqliteEvents:
    """Ids of deliveries."""

    file: Connections
    clock: Clock

    def claim(self, event_id: str) -> bool:
        """Whether this caller is the first."""
        sql = "insert into events values (?, ?) on conflict do nothing"
        with self.file.transaction() as db:
            return db.execute(sql, (event_id, to_us(self.clock.now()))).rowcount == 1


@dataclass(frozen=True, slots=True)
class SqliteWork:
    """Acknowledged work that is not finished."""

    file: Connections
    clock: Clock

    def put(self, id: str, kind: str, payload: Mapping[str, Any]) -> bool:
        """Adds work, once."""
        text = json.dumps(payload, ensure_ascii=False, allow_nan=False)
        sql = "insert into work (id, kind, payload, put_us) values (?, ?, ?, ?) on conflict do nothing"
        with self.file.transaction() as db:
            return db.execute(sql, (id, kind, text, to_us(self.clock.now()))).rowcount == 1

    def take(self, worker: str, lease: timedelta, kinds: Iterable[str] | None = None) -> Job | None:
        """The oldest work that is free."""
        now = self.clock.now()
        wanted = None if kinds is None else json.dumps(sorted(kinds))
        params = {"worker": worker, "now_us": to_us(now), "until_us": to_us(now + lease), "kinds": wanted}
        with self.file.transaction() as db:
            found = db.execute(
                """select number from work where done_us is null and (worker is null or lease_until_us <= :now_us)
                and (:kinds is null or kind in (select value from json_each(:kinds))) order by number limit 1""",
                params,
            ).fetchone()
            if found is None:
                return None
            sql = """update work set worker = :worker, lease_until_us = :until_us, attempt = attempt + 1
                where number = :number"""
            db.execute(sql, params | {"number": found[0]})
            (row,) = db.query("select * from work where number = ?", (found[0],))
        return Job(
            id=row["id"],
            kind=row["kind"],
            payload=json.loads(row["payload"]),
            put_at=from_us(row["put_us"]),
            attempt=row["attempt"],
            worker=worker,
            stage=row["stage"],
        )

    def renew(self, job: Job, lease: timedelta) -> bool:
        """A longer lease, if the work is still held."""
        return self._change(job, "lease_until_us = :until_us", until_us=to_us(self.clock.now() + lease))

    def note(self, job: Job, stage: str) -> bool:
        """Word for a successor, if the work is still held."""
        return self._change(job, "stage = :stage", stage=stage)

    def finish(self, job: Job, asked: Asked | None = None) -> bool:
        """The end of the work and its row of the trail, together."""
        with self.file.transaction() as db:
            done = db.execute(
                f"update work set done_us = :now_us, worker = null, payload = '{{}}' where {_MINE}",
                _of_job(job) | {"now_us": to_us(self.clock.now())},
            )
            if done.rowcount != 1:
                return False
            if asked is not None:
                db.execute(ADD_ASKED, of_asked(asked))
            return True

    def put_back(self, job: Job) -> bool:
        """Lets the work go, if it is still held."""
        return self._change(job, "worker = null, lease_until_us = null")

    def open(self) -> int:
        """How much is not finished."""
        return int(self.file.rows("select count(*) as n from work where done_us is null")[0]["n"])

    def _change(self, job: Job, what: str, **params: Any) -> bool:
        with self.file.transaction() as db:
            return db.execute(f"update work set {what} where {_MINE}", _of_job(job) | params).rowcount == 1


def _of_job(job: Job) -> dict[str, Any]:
    return {"id": job.id, "attempt": job.attempt, "worker": job.worker}
