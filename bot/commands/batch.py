"""Lines of a batch: a named file, or standard input for `-`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from bot.errors import BadUsage


def lines_of(name: str) -> Iterator[str]:
    """Each line of the file, bytes that are not UTF-8 replaced; raises `BadUsage` where it cannot be read."""
    if name == "-":
        yield from sys.stdin
        return
    try:
        with Path(name).open(encoding="utf-8", errors="replace") as file:
            yield from file
    except OSError as exc:
        raise BadUsage("file_unusable", path=name, detail=exc.strerror or "") from exc
