"""The file of fresh prices in the team's folder: replaced whole, the one before kept, one writer at a time.

At every moment `offers.refreshed.csv` is the old file or the new one. Files are readable by their owner alone.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bot.sources.overrides import OFFER_COLUMNS, REFRESHED
from bot.sources.prices.errors import NothingToRevert, RefreshBusy
from bot.sources.prices.port import Row

PREVIOUS = "offers.previous.csv"
_LOCK = ".offers.refresh.lock"
_FRESH, _ASIDE = ".offers.refreshed.new", ".offers.previous.new"


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Holds the folder for one refresh; the system lets go of it when the process ends. Raises `RefreshBusy`."""
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise RefreshBusy from exc
        yield
    finally:
        os.close(lock)


def swap_in(folder: Path, rows: Iterable[Row]) -> Path:
    """Makes these rows the prices in use; a first refresh keeps an empty list as the previous one."""
    current, fresh = folder / REFRESHED, folder / _FRESH
    _write(fresh, _text(rows))
    if current.exists():
        _keep_as_previous(folder)
    else:
        _write(folder / _ASIDE, _text(()))
        os.replace(folder / _ASIDE, folder / PREVIOUS)
    os.replace(fresh, current)
    _sync_folder(folder)
    return current


def revert(folder: Path) -> Path:
    """Exchanges the prices in use with the previous ones. Raises `NothingToRevert`."""
    current, previous = folder / REFRESHED, folder / PREVIOUS
    if not previous.exists() or not current.exists():
        raise NothingToRevert
    fresh = folder / _FRESH
    _write(fresh, previous.read_text(encoding="utf-8"))
    _keep_as_previous(folder)
    os.replace(fresh, current)
    _sync_folder(folder)
    return current


def _keep_as_previous(folder: Path) -> None:
    aside = folder / _ASIDE
    _write(aside, (folder / REFRESHED).read_text(encoding="utf-8"))
    os.replace(aside, folder / PREVIOUS)


def _text(rows: Iterable[Row]) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, OFFER_COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def _write(path: Path, text: str) -> None:
    """A new file of its own, on the disk before this returns; what a killed writer left is removed first."""
    with suppress(FileNotFoundError):
        path.unlink()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
