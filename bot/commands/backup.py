"""`gpufit backup`: a checked copy of the store while the bot runs, and the way back."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from bot.commands.store import add_shared, command_error, database_of
from bot.errors import CommandError

_MIB = 2**20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("file", metavar="FILE", type=Path, help="where the copy goes, or comes from with --restore")
    parser.add_argument(
        "--restore", action="store_true", help="put the copy in the store's place; refused while a bot runs"
    )
    parser.add_argument("--replace", action="store_true", help="overwrite FILE if it exists")
    add_shared(parser)


def run(args: argparse.Namespace) -> int:
    """Copies or restores; says what was done."""
    database = database_of(args)
    try:
        from bot.store.errors import StoreError
        from bot.store.sqlite.backup import backup, restore
    except ModuleNotFoundError as exc:
        raise CommandError("bot_not_installed", package=exc.name or "") from exc
    from bot.answers.words import words

    try:
        done = restore(args.file, database) if args.restore else backup(database, args.file, replace=args.replace)
    except StoreError as exc:
        raise command_error(exc) from exc
    if args.json:
        form = {
            "path": str(done.path),
            "size_bytes": done.size_bytes,
            "version": done.version,
            "kept": str(done.kept) if done.kept else None,
        }
        print(json.dumps(form, ensure_ascii=False, indent=2))
        return 0
    say = words(args.lang).say
    params = {"path": str(done.path), "version": done.version, "size_mib": done.size_bytes / _MIB}
    print(say("restore_done" if args.restore else "backup_done", params))
    if done.kept is not None:
        print(say("restore_kept", {"path": str(done.kept)}))
    return 0
