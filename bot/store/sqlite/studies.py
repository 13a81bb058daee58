"""Purchase studies in SQLite."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from sqlite_utils import Database

from bot.store.clock import from_us, to_us
from bot.store.codec import from_text, to_text
from bot.store.records import KeptStudy, Person
from bot.store.sqlite.connection import Connections
from rules.cost.study import PurchaseStudy, StudyMeasurement
from rules.records import dataclass


@dataclass(frozen=True, slots=True)
class SqliteStudies:
    """Studies and their measurements."""

    file: Connections

    def save(self, study: KeptStudy) -> None:
        """Keeps a study in place of one with the same id."""
        params = {
            "id": study.study.id,
            "workspace": study.who.workspace,
            "user": study.who.user,
            "begun_us": to_us(study.begun),
            "study": to_text(study.study),
        }
        with self.file.transaction() as db:
            db.execute(
                """insert into studies values (:id, :workspace, :user, :begun_us, :study) on conflict do update set
                workspace = excluded.workspace, user = excluded.user, begun_us = excluded.begun_us,
                study = excluded.study""",
                params,
            )
            for measurement in study.measurements:
                _add(db, study.study.id, measurement)

    def measured(self, study_id: str, measurement: StudyMeasurement) -> bool:
        """Adds a day to a study that is there."""
        with self.file.transaction() as db:
            if db.execute("select 1 from studies where id = ?", (study_id,)).fetchone() is None:
                return False
            _add(db, study_id, measurement)
            return True

    def get(self, study_id: str) -> KeptStudy | None:
        """One study."""
        found = self.file.rows("select * from studies where id = :id", id=study_id)
        return self._kept(found[0]) if found else None

    def of(self, workspace: str) -> tuple[KeptStudy, ...]:
        """Those of a workspace."""
        sql = "select * from studies where workspace = :workspace order by begun_us, id"
        return tuple(self._kept(row) for row in self.file.rows(sql, workspace=workspace))

    def delete(self, study_id: str) -> bool:
        """Removes one with its measurements."""
        with self.file.transaction() as db:
            return db.execute("delete from studies where id = ?", (study_id,)).rowcount == 1

    def _kept(self, row: Mapping[str, Any]) -> KeptStudy:
        sql = "select * from study_measurements where study_id = :id order by day, machine, side"
        days = self.file.rows(sql, id=row["id"])
        return KeptStudy(
            study=from_text(row["study"], PurchaseStudy),
            who=Person(row["workspace"], row["user"]),
            begun=from_us(row["begun_us"]),
            measurements=tuple(
                StudyMeasurement(
                    day=date.fromisoformat(day["day"]),
                    machine=day["machine"],
                    side=day["side"],
                    busy_hours=day["busy_hours"],
                    tokens_s=day["tokens_s"],
                )
                for day in days
            ),
        )


def _add(db: Database, study_id: str, one: StudyMeasurement) -> None:
    db.execute(
        "insert or replace into study_measurements values (?, ?, ?, ?, ?, ?)",
        (study_id, one.day.isoformat(), one.machine, one.side, one.busy_hours, one.tokens_s),
    )
