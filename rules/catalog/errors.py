"""Errors of the catalogue.

CatalogError            a row or a name is wrong; `message_id` and `params` let the answer say it in the user's language
└── UnknownName         a model, device or CPU name that the catalogue does not hold; carries near matches
"""

from __future__ import annotations


class CatalogError(ValueError):
    """A catalogue row or name is wrong. `params` fill the translated message `message_id`."""

    def __init__(self, message_id: str, **params: str) -> None:
        super().__init__(f"{message_id}: {params}")
        self.message_id = message_id
        self.params = params


class UnknownName(CatalogError):
    """A name that resolves to nothing; `suggestions` are the nearest known names, best first."""

    def __init__(self, kind: str, name: str, suggestions: tuple[str, ...] = ()) -> None:
        super().__init__("unknown_name", kind=kind, name=name, suggestions=", ".join(suggestions))
        self.kind = kind
        self.name = name
        self.suggestions = suggestions
