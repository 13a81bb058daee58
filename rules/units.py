"""Units. GiB = 2**30 and GB = 10**9 are never mixed: names of numbers carry `_bytes`, `_gib` or `_gb`."""

from __future__ import annotations

KIB = 1024
MIB = 1024**2
GIB = 1024**3
GB = 10**9

HOURS_PER_WEEK = 168
SECONDS_PER_DAY = 86_400


def to_gib(value_bytes: float) -> float:
    """Bytes as GiB (2**30 bytes)."""
    return value_bytes / GIB


def gib(value_gib: float) -> float:
    """GiB (2**30 bytes) as bytes."""
    return value_gib * GIB
