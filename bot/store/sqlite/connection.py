"""The file and the connections to it: one a thread, WAL, foreign keys, immediate transactions, readable by its owner.

Every open store holds a shared lock on `<file>.lock`; restoring takes it alone, so that a file is never exchanged under
a running bot. The system lets go of the lock when a process ends, however it ends.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from bot.store.errors import NotAStore, StoreBusy, StoreDamaged, StoreError, StoreNewer, StoreUnusable
from bot.store.sqlite.migrations import APPLICATION_ID, VERSION, migrate, version_of

BUSY_S = 15.0
_BUSY = ("database is locked", "database table is locked", "database schema is locked")
_PAUSE_S = 0.02


class Connections:
    """Connections to one file. A child process opens its own; a connection is never carried over a fork."""

    def __init__(self, path: Path, *, busy_s: float = BUSY_S) -> None:
        """Opens the file, makes it where it is missing, and migrates it.

        Raises `StoreUnusable`, `StoreNewer`, `StoreBusy`, `StoreDamaged` or `NotAStore`.
        """
        self.path = path
        self._busy_s = busy_s
        self._local = threading.local()
        self._all: weakref.WeakSet[Database] = weakref.WeakSet()
        self._guard = threading.Lock()
        self._lock = held(path, alone=False)
        try:
            with said(path):
                create(path)
                db = self.here()
                with self.transaction():
                    _own(db, path)
                    migrate(db)
        except BaseException:
            self.close()
            raise

    def here(self) -> Database:
        """The connection of the calling thread."""
        db: Database | None = getattr(self._local, "db", None)
        if db is None:
            db = connected(self.path, self._busy_s)
            self._local.db = db
            with self._guard:
                self._all.add(db)
        return db

    @contextmanager
    def transaction(self) -> Iterator[Database]:
        """A write transaction; whole or not at all. Raises `StoreBusy` after the busy time-out."""
        with said(self.path):
            db = self.here()
            db.conn.execute("begin immediate")
            try:
                yield db
                db.conn.execute("commit")
            except BaseException:
                if db.conn.in_transaction:
                    db.conn.execute("rollback")
                raise

    def rows(self, sql: str, **params: Any) -> list[Mapping[str, Any]]:
        """What a query finds, as one consistent reading."""
        with said(self.path):
            return list(self.here().query(sql, params))

    def close(self) -> None:
        """Closes the connections of all threads and lets go of the file."""
        with self._guard:
            for db in self._all:
                with suppress(sqlite3.Error):
                    db.conn.close()
            self._all.clear()
        self._local = threading.local()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


@contextmanager
def said(path: Path) -> Iterator[None]:
    """Errors of SQLite and of the file system as those of the store."""
    try:
        yield
    except StoreError:
        raise
    except sqlite3.OperationalError as exc:
        if any(text in str(exc) for text in _BUSY):
            raise StoreBusy(str(path)) from exc
        raise StoreUnusable(str(path), str(exc)) from exc
    except sqlite3.DatabaseError as exc:
        if isinstance(exc, (sqlite3.IntegrityError, sqlite3.ProgrammingError)):
            raise
        if "not a database" in str(exc):
            raise NotAStore(str(path)) from exc
        raise StoreDamaged(str(path), str(exc)) from exc
    except OSError as exc:
        raise StoreUnusable(str(path), exc.strerror or type(exc).__name__) from exc


def held(path: Path, *, alone: bool) -> int:
    """A lock on the file, as an open descriptor. Raises `StoreBusy` where another process's lock stands against it."""
    import fcntl

    with said(path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(lock_path(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            os.close(lock)
            raise StoreBusy(str(path)) from exc
        return lock


def lock_path(path: Path) -> Path:
    """The file whose lock stands for the database."""
    return path.with_name(path.name + ".lock")


def create(path: Path) -> None:
    """Makes the empty file, for its owner alone, before SQLite would make it for everyone."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def connected(path: Path, busy_s: float = BUSY_S) -> Database:
    """A connection with the house's settings; the caller closes it."""
    conn = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
    try:
        conn.execute("pragma foreign_keys = on")
        conn.execute("pragma secure_delete = on")  # what a person deletes is gone from the file
        conn.execute("pragma auto_vacuum = incremental")  # takes hold in a new file only
        conn.execute("pragma synchronous = full")  # what was acknowledged survives a power cut
        _use_wal(conn, busy_s)
        return Database(conn)
    except BaseException:
        conn.close()
        raise


def _use_wal(conn: sqlite3.Connection, busy_s: float) -> None:
    """Two processes that both switch a new file to WAL can refuse each other at once, whatever the busy time-out is."""
    pause = threading.Event()
    for _ in range(max(1, int(busy_s / _PAUSE_S))):
        try:
            conn.execute("pragma journal_mode = wal")
            return
        except sqlite3.OperationalError as exc:
            if not any(text in str(exc) for text in _BUSY):
                raise
            pause.wait(_PAUSE_S)
    conn.execute("pragma journal_mode = wal")


def _own(db: Database, path: Path) -> None:
    """Raises `NotAStore` for another program's database and `StoreNewer` for one of a later version."""
    found = int(db.execute("pragma application_id").fetchone()[0])
    has_tables = db.execute("select 1 from sqlite_master limit 1").fetchone() is not None
    if found != APPLICATION_ID and (found or has_tables):
        raise NotAStore(str(path))
    if (version := version_of(db)) > VERSION:
        raise StoreNewer(str(path), version, VERSION)
