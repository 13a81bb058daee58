"""Why a sum of money cannot be made."""

from __future__ import annotations

from rules.memory.footprint import Note


class CostError(ValueError):
    """An amount, currency or input that cannot be used; `note` says why, in a message id with parameters."""

    def __init__(self, note: Note) -> None:
        super().__init__(f"{note.message}: {dict(note.params)}")
        self.note = note
