"""What `gpufit doctor --online` asks of others: one short request each, through one port."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Protocol

from rules.records import dataclass

TIMEOUT_S = 8.0
_MOST_BYTES = 2**20


class Unreached(Exception):
    """No answer; the text says why and holds no token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer: HTTP status, the other side's time (UTC), OAuth scopes of the token, and its JSON object if any."""

    status: int
    at: datetime | None = None
    scopes: frozenset[str] = frozenset()
    body: Mapping[str, Any] = field(default_factory=dict)


class Reach(Protocol):
    """Asks one URL."""

    def ask(self, url: str, token: str | None = None) -> Reply:
        """A POST with the bearer token, or a GET without one. Raises `Unreached`."""
        ...


class HttpReach:
    """Asks over the network; follows no redirect, so that a token goes only where it was sent."""

    def __init__(self, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s

    def ask(self, url: str, token: str | None = None) -> Reply:
        """The answer. Raises `Unreached`."""
        import httpx

        headers = {"User-Agent": "gpufit"} | ({"Authorization": f"Bearer {token}"} if token else {})
        try:
            with httpx.stream("POST" if token else "GET", url, headers=headers, timeout=self._timeout_s) as response:
                body = bytearray()
                if token:
                    for chunk in response.iter_bytes():
                        body += chunk
                        if len(body) > _MOST_BYTES:
                            break
                return Reply(
                    status=response.status_code,
                    at=_moment(response.headers.get("date", "")),
                    scopes=_names(response.headers.get("x-oauth-scopes", "")),
                    body=_object(bytes(body)),
                )
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            raise Unreached(type(exc).__name__) from None


def _moment(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None


def _names(text: str) -> frozenset[str]:
    return frozenset(name for part in text.split(",") if (name := part.strip()))


def _object(body: bytes) -> Mapping[str, Any]:
    import json

    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
