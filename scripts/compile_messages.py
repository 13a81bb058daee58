"""Compiles the text catalogues: every `gpufit.po` under bot/answers/locale to the `gpufit.mo` beside it.

Usage: python scripts/compile_messages.py [--check]     --check changes nothing and fails where a .mo is out of date.
"""

from __future__ import annotations

import io
import sys
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

LOCALE = Path(__file__).resolve().parent.parent / "bot" / "answers" / "locale"


def compiled(po_path: Path) -> bytes:
    """The .mo bytes of one .po file."""
    with po_path.open("rb") as source:
        catalogue = read_po(source, locale=po_path.parent.parent.name)
    catalogue.creation_date = catalogue.revision_date = datetime.fromtimestamp(0, UTC)  # the same text, the same bytes
    target = io.BytesIO()
    write_mo(target, catalogue)
    return target.getvalue()


def main(arguments: list[str]) -> int:
    """Compiles or checks; the exit status is 1 where --check finds a stale file."""
    stale = []
    for po_path in sorted(LOCALE.glob("*/LC_MESSAGES/gpufit.po")):
        mo_path, content = po_path.with_suffix(".mo"), compiled(po_path)
        if mo_path.exists() and mo_path.read_bytes() == content:
            continue
        stale.append(str(mo_path.relative_to(LOCALE)))
        if "--check" not in arguments:
            mo_path.write_bytes(content)
    if stale and "--check" in arguments:
        print(f"out of date: {', '.join(stale)}; run python scripts/compile_messages.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
