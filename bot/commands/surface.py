"""The terminal that a command writes to: how wide, whether in colour, whether it can show more than ASCII."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.answers.layout import Surface

NARROWEST, WIDEST = 60, 120


def terminal(plain: bool) -> Surface:
    """The surface of standard output; `plain` is the user's wish. NO_COLOR and TERM=dumb are obeyed."""
    from bot.answers.layout import Surface

    ascii_only = "utf" not in (sys.stdout.encoding or "").lower()
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    columns = shutil.get_terminal_size((80, 24)).columns
    return Surface(width=min(WIDEST, max(NARROWEST, columns)), colour=colour and not plain, plain=plain or ascii_only)
