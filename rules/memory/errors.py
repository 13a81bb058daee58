"""Errors of the memory laws.

UnsupportedWorkload     the laws cannot say anything sound about this; `message_id` and `params` tell the user why
"""

from __future__ import annotations


class UnsupportedWorkload(ValueError):
    """No law covers this workload, or a field that the law cannot do without is missing."""

    def __init__(self, message_id: str, **params: str | float) -> None:
        super().__init__(f"{message_id}: {params}")
        self.message_id = message_id
        self.params = params
