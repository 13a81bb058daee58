"""The schema, as numbered steps. `PRAGMA user_version` says which was done last; a step is never changed once released.

Each step is idempotent and they run in one transaction: a process that dies in the middle leaves the version before.
Moments are whole microseconds since 1970 (UTC); texts named `state`, `parsed` and `study` are in `bot.store.codec`.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlite_utils import Database

APPLICATION_ID = 0x47505546  # "GPUF", in the header of the file

_FIRST = (
    """create table if not exists conversations (
        workspace text not null, channel text not null, kind text not null check (kind in ('thread', 'user')),
        id text not null, state text not null, saved_us integer not null, expires_us integer not null,
        primary key (workspace, channel, kind, id)) without rowid""",
    "create index if not exists conversations_by_expiry on conversations (expires_us)",
    """create table if not exists asked (
        id text primary key, workspace text not null, user text not null, channel text not null, thread text,
        at_us integer not null, text text not null, answer text not null, lang text not null, rules text not null,
        catalogue text not null, parsed text, shared integer not null default 0)""",
    "create index if not exists asked_by_person on asked (workspace, user, at_us)",
    "create index if not exists asked_by_time on asked (at_us)",
    """create table if not exists preferences (
        workspace text not null, kind text not null check (kind in ('user', 'channel')), id text not null,
        name text not null, value text not null, primary key (workspace, kind, id, name)) without rowid""",
    "create table if not exists events (id text primary key, claimed_us integer not null) without rowid",
    "create index if not exists events_by_time on events (claimed_us)",
    """create table if not exists work (
        number integer primary key autoincrement, id text not null unique, kind text not null, payload text not null,
        put_us integer not null, attempt integer not null default 0, worker text, lease_until_us integer,
        stage text not null default '', done_us integer)""",
    "create index if not exists work_open on work (number) where done_us is null",
)
_FEEDBACK = (
    """create table if not exists opinions (
        answer_id text not null references asked (id) on delete cascade, workspace text not null, user text not null,
        at_us integer not null, is_right integer, key text, value real, said text, outcome text,
        primary key (answer_id, workspace, user)) without rowid""",
    "create index if not exists opinions_by_time on opinions (at_us)",
)
_STUDIES = (
    """create table if not exists studies (
        id text primary key, workspace text not null, user text not null, begun_us integer not null,
        study text not null)""",
    """create table if not exists study_measurements (
        study_id text not null references studies (id) on delete cascade, day text not null, machine text not null,
        side text not null, busy_hours real not null, tokens_s real,
        primary key (study_id, day, machine, side)) without rowid""",
)


def _statements(statements: tuple[str, ...]) -> Callable[[Database], None]:
    def run(db: Database) -> None:
        for statement in statements:
            db.execute(statement)

    return run


MIGRATIONS: tuple[Callable[[Database], None], ...] = tuple(map(_statements, (_FIRST, _FEEDBACK, _STUDIES)))
VERSION = len(MIGRATIONS)


def version_of(db: Database) -> int:
    """The version of the schema in the file; 0 for an empty one."""
    return int(db.execute("pragma user_version").fetchone()[0])


def migrate(db: Database, up_to: int = VERSION) -> int:
    """Brings the schema up to a version inside the caller's transaction; the version that was there before."""
    found = version_of(db)
    for number in range(found, up_to):
        MIGRATIONS[number](db)
        db.execute(f"pragma user_version = {number + 1}")
    if found < up_to:
        db.execute(f"pragma application_id = {APPLICATION_ID}")
    return found
