"""`gpufit store`: what the bot remembers, in figures; delete what is old; export the audit trail."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bot.errors import BadUsage, CommandError

if TYPE_CHECKING:
    from bot.settings import Settings
    from bot.store.errors import StoreError
    from bot.store.records import Asked
    from bot.store.sqlite.store import SqliteStore

_MIB = 2**20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command and its three actions."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    info = actions.add_parser("info", help="version, size and rows of each kind")
    purge = actions.add_parser("purge", help="delete what is older than the settings keep it")
    export = actions.add_parser("export", help="questions and answers as JSON Lines, the oldest first")
    export.add_argument("--workspace", help="only of this workspace")
    export.add_argument("--user", help="only of this user")
    for action in (info, purge, export):
        add_shared(action)


def add_shared(parser: argparse.ArgumentParser) -> None:
    """Options of every command that opens the store."""
    parser.add_argument(
        "--database", metavar="FILE", type=Path, help="the store's file (default: GPUFIT_DATABASE or the settings)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--lang", choices=("en", "es"), default="en", help="language of the report")


def run(args: argparse.Namespace) -> int:
    """Does one action; what is wrong with the file or the settings is one line on standard error."""
    from bot.store.errors import StoreError

    try:
        with closing(opened(args)) as store:
            _ACTIONS[args.action](store, args)
    except StoreError as exc:
        raise command_error(exc) from exc
    return 0


def settings_in_force() -> Settings:
    """The settings; raises `CommandError` where they cannot be used or the extra `bot` is not installed."""
    try:
        from bot.settings import SettingsError, load
    except ModuleNotFoundError as exc:
        raise CommandError("bot_not_installed", package=exc.name or "") from exc
    try:
        return load()
    except SettingsError as exc:
        raise BadUsage(exc.message_id, **exc.params) from exc


def database_of(args: argparse.Namespace) -> Path:
    """The file that a command works on."""
    stated: Path | None = args.database
    return stated if stated is not None else settings_in_force().database


def opened(args: argparse.Namespace) -> SqliteStore:
    """The store of a file that is there; a command never makes one. Raises `StoreError`."""
    path = database_of(args)
    try:
        from bot.store.clock import SystemClock
        from bot.store.errors import StoreUnusable
        from bot.store.sqlite.store import SqliteStore
    except ModuleNotFoundError as exc:
        raise CommandError("bot_not_installed", package=exc.name or "") from exc
    if not path.is_file():
        import os

        raise StoreUnusable(str(path), os.strerror(2))
    return SqliteStore(path, SystemClock())


def command_error(error: StoreError) -> CommandError:
    """An error of the store as one of the command line."""
    return CommandError(error.message_id, **error.params)


def _info(store: SqliteStore, args: argparse.Namespace) -> None:
    from bot.answers.words import words

    info = store.info()
    if args.json:
        form = {
            "path": str(store.path),
            "version": info.version,
            "size_bytes": info.size_bytes,
            "rows": dict(info.rows),
            "work_open": info.work_open,
            "oldest": info.oldest.isoformat() if info.oldest else None,
        }
        print(json.dumps(form, ensure_ascii=False, indent=2))
        return
    say = words(args.lang).say
    print(say("store_file", {"path": str(store.path), "version": info.version, "size_mib": info.size_bytes / _MIB}))
    for kind, rows in info.rows.items():
        print("  " + say("store_rows", {"kind": kind, "rows": rows}))
    print(say("store_work_open", {"rows": info.work_open}))
    if info.oldest is not None:
        print(say("store_oldest", {"day": info.oldest.date().isoformat()}))


def _purge(store: SqliteStore, args: argparse.Namespace) -> None:
    from bot.answers.words import words
    from bot.store.records import Retention

    deleted = store.purge(Retention(**settings_in_force().keep.model_dump()))
    if args.json:
        print(json.dumps({"deleted": dict(deleted)}, indent=2))
        return
    say = words(args.lang).say
    print(say("store_purged"))
    for kind, rows in deleted.items():
        print("  " + say("store_rows", {"kind": kind, "rows": rows}))


def _export(store: SqliteStore, args: argparse.Namespace) -> None:
    for asked in _wanted(store, args):
        print(json.dumps(_plain(asked), ensure_ascii=False))


def _wanted(store: SqliteStore, args: argparse.Namespace) -> Iterator[Asked]:
    for asked in store.trail.all():
        if args.workspace in (None, asked.who.workspace) and args.user in (None, asked.who.user):
            yield asked


def _plain(asked: Asked) -> dict[str, Any]:
    return {
        "id": asked.id,
        "workspace": asked.who.workspace,
        "user": asked.who.user,
        "channel": asked.channel,
        "thread": asked.thread,
        "at": asked.at.isoformat(),
        "text": asked.text,
        "answer": asked.answer,
        "lang": asked.lang,
        "shared": asked.shared,
        "rules": asked.rules,
        "catalogue": asked.catalogue,
        "understood": asked.parsed.to_json() if asked.parsed is not None else None,
    }


_ACTIONS = {"info": _info, "purge": _purge, "export": _export}
