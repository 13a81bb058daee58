"""Purchase studies as JSON files in the team's folder, one each: the comparison as it began, and what was measured.

Only the team's user may read them (0600). A change is written beside the file and swapped in whole, one at a time.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bot.sources.errors import SourceError
from rules.cost.study import PurchaseStudy, StudyMeasurement
from rules.records import dataclass
from rules.wire import WireError, plain, read

_FOLDER = "studies"
_LOCK = ".lock"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_MOST_BYTES = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptStudy:
    """A study with the question that it answers, the language of its answers and the rented machine's name."""

    question: str
    lang: str
    rented: str
    study: PurchaseStudy
    measurements: tuple[StudyMeasurement, ...] = ()


class Studies:
    """The studies of one team's folder. Every method raises `SourceError` for a name or file that cannot be used."""

    def __init__(self, home: Path) -> None:
        self._folder = home / _FOLDER

    def names(self) -> list[str]:
        """The names of all studies, sorted."""
        return sorted(path.stem for path in self._folder.glob("*.json") if _NAME.fullmatch(path.stem))

    def load(self, name: str) -> KeptStudy:
        """One study as it stands."""
        path = self._path(name)
        try:
            if path.stat().st_size > _MOST_BYTES:
                raise _problem("file_unusable", path=str(path), detail=f"> {_MOST_BYTES} bytes")
            return read(KeptStudy, json.loads(path.read_text("utf-8")))
        except FileNotFoundError as exc:
            raise _problem("study_unknown", name=name, known=", ".join(self.names()) or "-") from exc
        except (OSError, ValueError, RecursionError) as exc:
            detail = str(exc) if isinstance(exc, WireError) else type(exc).__name__
            raise _problem("file_unusable", path=str(path), detail=detail) from exc

    def check_new(self, name: str) -> None:
        """Checks that a study of this name can be started."""
        if self._path(name).exists():
            raise _problem("study_exists", name=name)

    def start(self, name: str, kept: KeptStudy) -> None:
        """Keeps a new study; one of that name must not exist."""
        with self._alone():
            self.check_new(name)
            self._write(self._path(name), kept)

    def add(self, name: str, measured: StudyMeasurement) -> KeptStudy:
        """Adds a measurement; returns the study with it."""
        return self._changed(name, lambda kept: replace(kept, measurements=(*kept.measurements, measured)))

    def _changed(self, name: str, change: Callable[[KeptStudy], KeptStudy]) -> KeptStudy:
        path = self._path(name)
        if not path.exists():
            return self.load(name)  # says that there is none
        with self._alone():
            kept = change(self.load(name))
            self._write(path, kept)
        return kept

    def _path(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise _problem("study_name_invalid", name=name)
        return self._folder / f"{name}.json"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise _problem("file_unusable", path=str(self._folder), detail=exc.strerror or "") from exc
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _write(self, path: Path, kept: KeptStudy) -> None:
        beside = path.with_suffix(".new")
        try:
            beside.unlink(missing_ok=True)
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(plain(kept), file, ensure_ascii=False, indent=1)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
        except OSError as exc:
            raise _problem("file_unusable", path=str(path), detail=exc.strerror or "") from exc


def _problem(message_id: str, **params: str) -> SourceError:
    return SourceError(message_id, f"{message_id}: {params}", **params)
