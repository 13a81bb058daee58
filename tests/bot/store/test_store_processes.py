"""Several processes on one file: claims have one winner, and a kill at any moment loses and doubles nothing."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from bot.store.clock import SystemClock
from bot.store.errors import StoreBusy
from bot.store.records import Person
from bot.store.sqlite.backup import backup, check, restore
from bot.store.sqlite.store import SqliteStore

WORKER = Path(__file__).with_name("store_worker.py")
ROOT = Path(__file__).resolve().parents[3]
KILLS = 50 if os.environ.get("GPUFIT_SOAK") == "1" else 5
DEADLINE_S = 60.0


def start(file: Path, role: str, name: str) -> subprocess.Popen[str]:
    """A process that shares the file."""
    return subprocess.Popen(
        [sys.executable, str(WORKER), str(file), role, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def until(found: object, what: str) -> None:
    """Waits until `found()` is true; fails after the deadline."""
    ends = time.monotonic() + DEADLINE_S
    while not found():  # type: ignore[operator]
        assert time.monotonic() < ends, what
        time.sleep(0.02)


def test_two_processes_never_win_the_same_claim(tmp_path: Path) -> None:
    """Of 300 events that two processes claim at the same time each is won once, and both win some."""
    children = [start(tmp_path / "s.db", "claim", "300") for _ in range(2)]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    won = [child.communicate()[0].split() for child in children]
    assert sorted(won[0] + won[1]) == sorted(f"Ev{number}" for number in range(300))
    assert [child.returncode for child in children] == [0, 0]


def test_a_new_file_can_be_made_by_all_at_once(tmp_path: Path) -> None:
    """Four processes that make and migrate the same missing file all get a working store."""
    children = [start(tmp_path / "s.db", "claim", "1") for _ in range(4)]
    won = [child.communicate("go\n")[0].split() for child in children]
    assert [child.returncode for child in children] == [0] * 4
    assert sum("Ev0" in lines for lines in won) == 1


def test_kill_9_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """Whatever moment two writers are killed at, the file stays sound, and every acknowledged piece of work is done
    exactly once by those who come after."""
    file, chance = tmp_path / "s.db", random.Random(20260504)
    store = SqliteStore(file, SystemClock())
    acknowledged: list[str] = []
    for kill in range(KILLS):
        before = store.info().rows["work"]
        putter, worker = start(file, "put", f"p{kill}"), start(file, "work", f"w{kill}")
        until(lambda before=before: store.info().rows["work"] > before + 3, "nothing was put")
        time.sleep(chance.uniform(0.0, 0.25))
        victims = [putter, worker]
        chance.shuffle(victims)
        for victim in victims:
            victim.kill()
        assert putter.stdout is not None
        acknowledged += [line[:-1] for line in putter.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        for victim in victims:
            victim.communicate()
        assert check(file)[1] == []
    last = [start(file, "work", f"last{n}") for n in range(2)]
    try:
        until(lambda: store.work.open() == 0, "work was left")
    finally:
        for child in last:
            child.kill()
            child.communicate()
    done = Counter(row.id.partition("/")[0] for row in store.trail.of(Person("T1", "U1"), limit=10**6))
    assert len(acknowledged) >= 4 * KILLS
    assert set(acknowledged) <= set(done)
    assert set(done.values()) == {1}
    assert len(done) == store.info().rows["work"]
    store.close()


def test_backups_while_others_write_are_whole(tmp_path: Path) -> None:
    """Each of five backups taken under writing passes its check, holds what was acknowledged before it began, and can
    be restored only when nobody holds the file."""
    file = tmp_path / "s.db"
    store = SqliteStore(file, SystemClock())
    putter = start(file, "put", "p")
    try:
        until(lambda: store.work.open() > 5, "nothing was put")
        for number in range(5):
            known = store.work.open()
            copy = backup(file, tmp_path / f"copy{number}.db").path
            assert check(copy)[1] == []
            opened = SqliteStore(copy, SystemClock())
            assert opened.work.open() >= known
            opened.close()
        store.close()
        with pytest.raises(StoreBusy):
            restore(copy, file)
    finally:
        putter.kill()
        putter.communicate()
    restored = restore(copy, file)
    assert restored.kept is not None
    assert SqliteStore(restored.kept, SystemClock()).work.open() >= known
    assert SqliteStore(file, SystemClock()).work.open() >= known
