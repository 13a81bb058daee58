"""A process that shares a store with others and may be killed at any moment.

`python store_worker.py FILE ROLE NAME`: `put` adds work until it is killed and prints each id once it is stored;
`work` takes and finishes work; `claim COUNT` claims events and prints those that it won.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from time import sleep

from bot.store.clock import SystemClock
from bot.store.records import Asked, Person
from bot.store.sqlite.store import SqliteStore

LEASE = timedelta(seconds=0.4)


def put(store: SqliteStore, name: str) -> None:
    """Adds work for ever; a printed id was acknowledged."""
    for number in count():
        store.work.put(f"{name}-{number}", "answer", {"text": "13B fine-tune QLoRA " * 20})
        print(f"{name}-{number}", flush=True)
        sleep(0.002)


def work(store: SqliteStore, name: str) -> None:
    """Finishes work for ever; the row of the trail names the attempt, so that a second one would show."""
    while True:
        job = store.work.take(name, LEASE)
        if job is None:
            sleep(0.005)
            continue
        store.work.note(job, "posting")
        store.work.finish(
            job,
            Asked(
                id=f"{job.id}/{job.attempt}",
                who=Person("T1", "U1"),
                channel="C1",
                at=datetime.now(UTC),
                text="t",
                answer="a",
                lang="en",
                rules="1",
                catalogue="1",
            ),
        )


def claim(store: SqliteStore, events: int) -> None:
    """Claims the same events as everybody else, after a line on standard input says go."""
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(events):
        if store.events.claim(f"Ev{number}"):
            print(f"Ev{number}")


if __name__ == "__main__":
    opened = SqliteStore(Path(sys.argv[1]), SystemClock())
    if sys.argv[2] == "claim":
        claim(opened, int(sys.argv[3]))
    else:
        {"put": put, "work": work}[sys.argv[2]](opened, sys.argv[3])
