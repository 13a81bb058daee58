"""Backup while others write, and restore under a lock that no running bot shares.

At every moment the target of a backup and the database itself are the old file or the new one, whole and checked.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sqlite_utils import Database

from bot.store.errors import FileExists, NotAStore, StoreDamaged, StoreNewer, StoreUnusable
from bot.store.sqlite.connection import BUSY_S, connected, create, held, said
from bot.store.sqlite.migrations import APPLICATION_ID, VERSION, migrate, version_of
from rules.records import dataclass

_FAULTS_SHOWN = 10
_SIDES = ("-wal", "-shm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """A finished copy: where it lies, its bytes, the version of its schema; `kept` is what a restore replaced."""

    path: Path
    size_bytes: int
    version: int
    kept: Path | None = None


def backup(database: Path, target: Path, *, replace: bool = False) -> Copied:
    """Copies the database as of one moment to `target`, while others go on writing.

    Raises `FileExists` without `replace`, `StoreDamaged` where the copy fails its check, and the errors of opening.
    """
    if target.exists() and (not replace or target.samefile(database)):
        raise FileExists(str(target))
    with said(target), _fresh(target) as fresh:
        with closing(_read_only(database)) as source:
            _ours(source, database)
            _copy(source, fresh)
        version = _checked(fresh, target)
        os.replace(fresh, target)
        _sync_folder(target)
    return Copied(path=target, size_bytes=target.stat().st_size, version=version)


def restore(saved: Path, database: Path) -> Copied:
    """Puts a backup in the database's place, migrated; what was there is kept as `<database>.before-restore`.

    Raises `StoreBusy` while anybody holds the database, and `NotAStore`, `StoreNewer` or `StoreDamaged` for a backup
    that cannot be used; then nothing has changed.
    """
    lock = held(database, alone=True)
    try:
        with said(saved), _fresh(database) as fresh:
            with closing(_read_only(saved)) as source:
                _ours(source, saved)
                faults = faults_of(source)
                if faults:
                    raise StoreDamaged(str(saved), faults[0])
                _copy(source, fresh)
            _migrated(fresh)
            version = _checked(fresh, saved)
            kept = _set_aside(database)
            os.replace(fresh, database)
            _sync_folder(database)
        return Copied(path=database, size_bytes=database.stat().st_size, version=version, kept=kept)
    finally:
        os.close(lock)


def check(database: Path) -> tuple[int, list[str]]:
    """(version of the schema, faults) of a database, without changing it. Raises the errors of opening."""
    with said(database), closing(_read_only(database)) as conn:
        version = _ours(conn, database)
        return version, faults_of(conn)


def faults_of(conn: sqlite3.Connection) -> list[str]:
    """What the integrity check and the check of foreign keys find wrong, the first few."""
    try:
        found = [row[0] for row in conn.execute(f"pragma integrity_check({_FAULTS_SHOWN})") if row[0] != "ok"]
        orphans = [f"{row[0]} row {row[1]} without its {row[2]}" for row in conn.execute("pragma foreign_key_check")]
    except sqlite3.DatabaseError as exc:
        return [str(exc)]
    return [" ".join(str(fault).split()) for fault in (*found, *orphans)][:_FAULTS_SHOWN]


def _read_only(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing. SQLite's own read-only mode would leave a log behind that it made."""
    if not path.is_file():
        raise StoreUnusable(str(path), os.strerror(2))
    conn = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=BUSY_S)
    conn.execute("pragma query_only = on")
    return conn


def _ours(conn: sqlite3.Connection, path: Path) -> int:
    db = Database(conn)
    if int(db.execute("pragma application_id").fetchone()[0]) != APPLICATION_ID:
        raise NotAStore(str(path))
    if (version := version_of(db)) > VERSION:
        raise StoreNewer(str(path), version, VERSION)
    return version


@contextmanager
def _fresh(target: Path) -> Iterator[Path]:
    """An empty file beside the target, for its owner alone; gone afterwards unless it was moved."""
    fresh = target.with_name(f".{target.name}.{os.getpid()}.new")
    _remove(fresh)
    create(fresh)
    try:
        yield fresh
    finally:
        _remove(fresh)


def _copy(source: sqlite3.Connection, fresh: Path) -> None:
    with closing(sqlite3.connect(fresh)) as target:
        source.backup(target)
        target.execute("pragma journal_mode = delete")  # one file, nothing beside it


def _migrated(fresh: Path) -> None:
    with closing(connected(fresh).conn) as conn:
        conn.execute("begin immediate")
        migrate(Database(conn))
        conn.execute("commit")
        conn.execute("pragma journal_mode = delete")


def _checked(fresh: Path, named: Path) -> int:
    with closing(_read_only(fresh)) as conn:
        faults = faults_of(conn)
        if faults:
            raise StoreDamaged(str(named), faults[0])
        version = version_of(Database(conn))
    descriptor = os.open(fresh, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return version


def _set_aside(database: Path) -> Path | None:
    """Keeps a copy of what is in place, as a whole where it can be read, else its files as they are."""
    if not database.exists():
        _remove(database)
        return None
    kept = database.with_name(database.name + ".before-restore")
    _remove(kept)
    try:
        with closing(_read_only(database)) as source, _fresh(kept) as fresh:
            _copy(source, fresh)
            os.replace(fresh, kept)
    except (sqlite3.Error, OSError):
        for side in ("", *_SIDES):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{database}{side}", f"{kept}{side}")
                os.chmod(f"{kept}{side}", 0o600)
    for side in _SIDES:  # they belong to the old file and would be read into the new one
        with suppress(FileNotFoundError):
            os.unlink(f"{database}{side}")
    return kept


def _remove(path: Path) -> None:
    for side in ("", *_SIDES, "-journal"):
        with suppress(FileNotFoundError):
            os.unlink(f"{path}{side}")


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
