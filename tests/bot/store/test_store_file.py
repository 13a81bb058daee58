"""The SQLite file: migrations, permissions, threads, damage, other people's files, backup and restore."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread

import pytest

from bot.questions.dialogue import Conversation
from bot.store.clock import SteppedClock, SystemClock
from bot.store.errors import (
    FileExists,
    NotAStore,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreNewer,
    StoreUnusable,
)
from bot.store.records import Asked, ConversationKey, Feedback, Person
from bot.store.sqlite.backup import backup, check, restore
from bot.store.sqlite.connection import connected
from bot.store.sqlite.migrations import MIGRATIONS, VERSION, migrate, version_of
from bot.store.sqlite.store import SqliteStore

ANN = Person("T1", "U1")
NOW = datetime(2026, 5, 4, tzinfo=UTC)
ROW = Asked(id="a1", who=ANN, channel="C1", at=NOW, text="t", answer="a", lang="en", rules="1", catalogue="1")


def opened(path: Path) -> SqliteStore:
    """A store on the file at a fixed time."""
    return SqliteStore(path, SteppedClock(NOW), busy_s=0.2)


def schema(path: Path) -> list[tuple[str, ...]]:
    """Everything that the file defines."""
    with closing(sqlite3.connect(path)) as conn:
        return sorted(conn.execute("select type, name, sql from sqlite_master where name not like 'sqlite_%'"))


@pytest.mark.parametrize("old", range(VERSION + 1))
def test_every_older_version_is_brought_up_to_date(tmp_path: Path, old: int) -> None:
    """A file of any version gets the schema of a new one and keeps its rows."""
    path = tmp_path / "old.db"
    db = connected(path)
    with db.atomic():
        migrate(db, up_to=old)
        if old:
            db.execute("insert into work (id, kind, payload, put_us) values ('w1', 'answer', '{}', 1)")
    db.conn.close()
    opened(tmp_path / "new.db").close()
    store = opened(path)
    assert store.info().version == VERSION
    assert store.work.open() == (1 if old else 0)
    assert store.trail.add(ROW)
    assert store.opinions.add(Feedback(answer_id="a1", who=ANN, at=NOW, right=True))
    store.close()
    assert schema(path) == schema(tmp_path / "new.db")
    assert check(path) == (VERSION, [])


@pytest.mark.parametrize("number", range(VERSION))
def test_a_step_done_twice_changes_nothing(tmp_path: Path, number: int) -> None:
    """Each migration is idempotent."""
    path = tmp_path / "s.db"
    opened(path).close()
    before = schema(path)
    db = connected(path)
    MIGRATIONS[number](db)
    db.conn.close()
    assert schema(path) == before


def test_a_migration_that_fails_leaves_the_version_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps are one transaction: after an error in the last the file is as it was, and the next start succeeds."""
    path = tmp_path / "s.db"
    db = connected(path)
    with db.atomic():
        migrate(db, up_to=1)
    db.conn.close()
    before = schema(path)

    def fails(db: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patched:
        patched.setattr("bot.store.sqlite.migrations.MIGRATIONS", (*MIGRATIONS[:-1], fails))
        with pytest.raises(StoreUnusable, match="disk I/O error"):
            opened(path)
    assert schema(path) == before
    assert opened(path).info().version == VERSION


def test_a_newer_file_is_left_alone(tmp_path: Path) -> None:
    """A file of a later version is refused with both numbers, by opening, checking and restoring."""
    path = tmp_path / "s.db"
    opened(path).close()
    with closing(sqlite3.connect(path)) as conn:
        conn.execute(f"pragma user_version = {VERSION + 1}")
    for use in (opened, check, lambda file: restore(file, tmp_path / "other.db")):
        with pytest.raises(StoreNewer, match=f"version {VERSION + 1}, this program knows up to {VERSION}"):
            use(path)
    assert not (tmp_path / "other.db").exists()


@pytest.mark.parametrize("kind", ["text", "database"])
def test_other_files_are_refused(tmp_path: Path, kind: str) -> None:
    """A file that is no database, or another program's, is refused and not changed."""
    path = tmp_path / "s.db"
    if kind == "text":
        path.write_text("not a database, but long enough to have a header " * 40)
    else:
        with closing(sqlite3.connect(path)) as conn:
            conn.execute("create table theirs (id integer)")
            conn.commit()
    before = path.read_bytes()
    for use in (check, lambda file: backup(file, tmp_path / "copy.db"), lambda file: restore(file, tmp_path / "o.db")):
        with pytest.raises(NotAStore):
            use(path)
    assert path.read_bytes() == before
    with pytest.raises(NotAStore):
        opened(path)
    assert not (tmp_path / "copy.db").exists()
    assert not (tmp_path / "o.db").exists()


def test_only_the_owner_reads_the_files(tmp_path: Path) -> None:
    """The database, its log, its lock, a backup and what a restore keeps are 0600, a folder that is made 0700,
    whatever the umask."""
    before = os.umask(0)
    try:
        path = tmp_path / "state" / "s.db"
        store = opened(path)
        store.trail.add(ROW)
        made = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
        backup(path, tmp_path / "copy.db")
        store.close()
        kept = restore(tmp_path / "copy.db", path).kept
    finally:
        os.umask(before)
    assert made == dict.fromkeys(("s.db", "s.db-wal", "s.db-shm", "s.db.lock"), 0o600)
    assert kept is not None
    for file in (path, kept, tmp_path / "copy.db"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_connections_have_the_house_s_settings(tmp_path: Path) -> None:
    """WAL, foreign keys, full synchronisation and erasing deletion, in every thread's own connection."""
    store = opened(tmp_path / "s.db")
    seen: dict[int, tuple[object, ...]] = {}

    def look(number: int) -> None:
        conn = store._file.here().conn
        names = ("journal_mode", "foreign_keys", "synchronous", "secure_delete", "auto_vacuum")
        seen[number] = (id(conn), *(conn.execute(f"pragma {name}").fetchone()[0] for name in names))

    look(0)
    thread = Thread(target=look, args=(1,))
    thread.start()
    thread.join()
    assert seen[0][1:] == seen[1][1:] == ("wal", 1, 2, 1, 2)
    assert seen[0][0] != seen[1][0]
    assert store._file.here() is store._file.here()


def test_what_a_person_deletes_is_gone_from_the_file(tmp_path: Path) -> None:
    """After deleting and purging no byte of the text is left in the files."""
    from bot.store.records import Retention

    path = tmp_path / "s.db"
    store = opened(path)
    store.trail.add(Asked(**{**{f: getattr(ROW, f) for f in Asked.__slots__}, "text": "my secret project zebra"}))
    assert b"zebra" in path.read_bytes() + path.with_name("s.db-wal").read_bytes()
    store.trail.delete(ANN)
    store.purge(Retention())
    assert b"zebra" not in path.read_bytes() + path.with_name("s.db-wal").read_bytes()


def test_a_writer_that_does_not_let_go_is_an_error_not_a_hang(tmp_path: Path) -> None:
    """While another connection holds the write lock reading goes on and writing ends in `StoreBusy`; then it works."""
    path = tmp_path / "s.db"
    store = opened(path)
    other = connected(path)
    other.conn.execute("begin immediate")
    assert store.trail.of(ANN) == ()
    with pytest.raises(StoreBusy):
        store.trail.add(ROW)
    other.conn.execute("rollback")
    assert store.trail.add(ROW)
    other.conn.close()


def test_an_error_in_a_transaction_leaves_nothing(tmp_path: Path) -> None:
    """Work whose answer cannot be stored stays open."""
    store = opened(tmp_path / "s.db")
    store.work.put("w1", "answer", {})
    job = store.work.take("one", timedelta(minutes=1))
    assert job is not None
    wrong = Asked(**{**{f: getattr(ROW, f) for f in Asked.__slots__}, "text": None})
    with pytest.raises(sqlite3.IntegrityError):
        store.work.finish(job, wrong)
    assert store.work.open() == 1
    assert store.work.finish(job, ROW)


def test_a_state_of_an_older_program_begins_anew(tmp_path: Path) -> None:
    """A conversation that this version cannot read counts as none, and can be saved over."""
    path = tmp_path / "s.db"
    store = opened(path)
    key = ConversationKey.of(ANN, "C1", None)
    store.conversations.save(key, Conversation(), timedelta(hours=1))
    with store._file.transaction() as db:
        db.execute("update conversations set state = ?", ('{"record":["Conversation",{"old":1}]}',))
    assert store.conversations.load(key) is None
    store.conversations.save(key, Conversation(), timedelta(hours=1))
    assert store.conversations.load(key) == Conversation()


def test_a_backup_overwrites_only_when_told(tmp_path: Path) -> None:
    """A target that exists is kept unless replacing was asked for, and the database itself is never the target."""
    path, copy = tmp_path / "s.db", tmp_path / "copy.db"
    store = opened(path)
    assert backup(path, copy).version == VERSION
    store.trail.add(ROW)
    with pytest.raises(FileExists):
        backup(path, copy)
    with pytest.raises(FileExists):
        backup(path, path, replace=True)
    backup(path, copy, replace=True)
    store.close()
    assert opened(copy).trail.get("a1") == ROW
    with pytest.raises(StoreUnusable):
        backup(tmp_path / "none.db", tmp_path / "x.db")
    with pytest.raises(StoreUnusable):
        backup(path, tmp_path / "no folder" / "x.db")
    assert sorted(file.name for file in tmp_path.iterdir() if file.name.startswith(".")) == []


def test_a_damaged_backup_is_not_restored(tmp_path: Path) -> None:
    """A backup with a broken page is refused; what is in place stays."""
    path, copy = tmp_path / "s.db", tmp_path / "copy.db"
    store = opened(path)
    for number in range(200):
        store.events.claim(f"Ev{number:0200d}")
    backup(path, copy)
    store.trail.add(ROW)
    store.close()
    with copy.open("r+b") as file:
        file.seek(copy.stat().st_size // 2)
        file.write(b"\xff" * 8192)
    assert check(copy)[1] != []
    with pytest.raises(StoreDamaged):
        restore(copy, path)
    assert opened(path).trail.get("a1") == ROW


def test_a_damaged_database_is_replaced(tmp_path: Path) -> None:
    """A database too broken to be opened is kept as it is and replaced by the backup, without its old log."""
    path, copy = tmp_path / "s.db", tmp_path / "copy.db"
    store = opened(path)
    store.trail.add(ROW)
    backup(path, copy)
    store.close()
    path.write_bytes(b"broken" * 1000)
    path.with_name("s.db-wal").write_bytes(b"old log")
    kept = restore(copy, path).kept
    assert kept is not None
    assert kept.read_bytes() == b"broken" * 1000
    assert not path.with_name("s.db-wal").exists()
    assert opened(path).trail.get("a1") == ROW


def test_an_old_backup_is_migrated_when_restored(tmp_path: Path) -> None:
    """A backup of the first version becomes a database of this one; the backup itself is not changed."""
    copy, path = tmp_path / "copy.db", tmp_path / "deep" / "s.db"
    db = connected(copy)
    with db.atomic():
        migrate(db, up_to=1)
    db.conn.execute("pragma journal_mode = delete")
    db.conn.close()
    before = copy.read_bytes()
    assert restore(copy, path).version == VERSION
    assert copy.read_bytes() == before
    db = connected(path)
    assert version_of(db) == VERSION
    db.conn.close()


def test_a_closed_store_lets_go(tmp_path: Path) -> None:
    """Restoring is refused while a store is open, in this process too, and works once it is closed."""
    path, copy = tmp_path / "s.db", tmp_path / "copy.db"
    store = SqliteStore(path, SystemClock())
    backup(path, copy)
    with pytest.raises(StoreBusy):
        restore(copy, path)
    store.close()
    restore(copy, path)


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """A path below a file is an error of the store with its path."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        opened(tmp_path / "file" / "s.db")
