"""Errors of the store, each with its message id.

StoreError            `message_id` and `params` say it in the user's language
├── StoreUnusable     the file cannot be opened, read or written
├── StoreNewer        a newer version of the product wrote the file
├── StoreBusy         another process holds the file, or did not let go of it in time
├── StoreDamaged      the file fails its integrity check
├── NotAStore         the file is no database of this product
├── FileExists        a backup would overwrite something
└── StateUnreadable   a stored state that this version cannot read
"""

from __future__ import annotations


class StoreError(Exception):
    """Something stored cannot be used."""

    def __init__(self, message_id: str, text: str, **params: str | int) -> None:
        super().__init__(text)
        self.message_id = message_id
        self.params = params


class StoreUnusable(StoreError):
    """The file cannot be opened, read or written."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__("store_unusable", f"{path}: {detail}", path=path, detail=detail)


class StoreNewer(StoreError):
    """A newer version of the product wrote the file; it is left as it is."""

    def __init__(self, path: str, found: int, known: int) -> None:
        text = f"{path}: version {found}, this program knows up to {known}"
        super().__init__("store_newer", text, path=path, found=found, known=known)


class StoreBusy(StoreError):
    """Another process holds the file."""

    def __init__(self, path: str) -> None:
        super().__init__("store_busy", f"{path}: in use", path=path)


class StoreDamaged(StoreError):
    """The integrity check found faults; `detail` is the first."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__("store_damaged", f"{path}: {detail}", path=path, detail=detail)


class NotAStore(StoreError):
    """The file is no database of this product."""

    def __init__(self, path: str) -> None:
        super().__init__("store_not_ours", f"{path}: not a GPUFit database", path=path)


class FileExists(StoreError):
    """The target of a backup is there already."""

    def __init__(self, path: str) -> None:
        super().__init__("backup_exists", f"{path}: exists", path=path)


class StateUnreadable(StoreError):
    """A stored state that this version of the product cannot read."""

    def __init__(self, detail: str) -> None:
        super().__init__("store_state_unreadable", detail, detail=detail)
