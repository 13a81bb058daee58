"""One bounded download: time-outs, a deadline, a size limit, few redirects, a short wait where a server says so.

The only module of the price sources that imports httpx.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from urllib.parse import urljoin, urlsplit

from bot.sources.prices.errors import PricesTooLarge, PricesUnreachable
from bot.sources.prices.port import Progress
from rules.records import dataclass

MIB = 2**20
_RETRIED = (429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of a download; seconds and bytes. `deadline_s` counts a whole answer with its redirects and retries."""

    silence_s: float = 10.0
    deadline_s: float = 120.0
    most_bytes: int = 64 * MIB
    redirects: int = 3
    retries: int = 2
    longest_wait_s: float = 20.0


@dataclass(frozen=True, slots=True)
class Downloader:
    """Gets a URL as bytes. `pause` and `clock` are the time, replaced in tests."""

    limits: Limits = Limits()
    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def get(self, url: str, source: str, progress: Progress) -> bytes:
        """The body of a 200 answer. Raises `PricesUnreachable` or `PricesTooLarge`, naming the source."""
        import httpx

        ends = self.clock() + self.limits.deadline_s
        redirects = retries = 0
        try:
            with httpx.Client(timeout=self.limits.silence_s, headers={"User-Agent": "gpufit"}) as client:
                while True:
                    with client.stream("GET", url) as response:
                        status = response.status_code
                        if status == 200:
                            return self._body(response.iter_bytes(), ends, source, progress)
                        place = response.headers.get("location", "")
                        told = response.headers.get("retry-after", "")
                    if 300 <= status < 400 and place:
                        redirects += 1
                        url = self.next_url(url, place, redirects, source)
                    elif status in _RETRIED and retries < self.limits.retries:
                        retries += 1
                        self._wait(told, retries, ends, source, status)
                    else:
                        raise PricesUnreachable(source, f"HTTP {status}")
        except httpx.TimeoutException as exc:
            raise PricesUnreachable(source, f"silent for {self.limits.silence_s:g} s") from exc
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            raise PricesUnreachable(source, type(exc).__name__) from exc

    def _body(self, chunks: Iterator[bytes], ends: float, source: str, progress: Progress) -> bytes:
        body = bytearray()
        for chunk in chunks:
            body += chunk
            if len(body) > self.limits.most_bytes:
                raise PricesTooLarge(source, self.limits.most_bytes / MIB)
            if self.clock() > ends:
                raise PricesUnreachable(source, f"not finished after {self.limits.deadline_s:g} s")
            progress(source, len(body))
        return bytes(body)

    def next_url(self, url: str, place: str, redirects: int, source: str) -> str:
        """Where a redirect leads: never from https to less, never to another scheme, never endlessly."""
        if redirects > self.limits.redirects:
            raise PricesUnreachable(source, "too many redirects")
        target = urljoin(url, place)
        secure = urlsplit(url).scheme == "https"
        if urlsplit(target).scheme not in (("https",) if secure else ("http", "https")):
            raise PricesUnreachable(source, f"redirect to {urlsplit(target).scheme}")
        return target

    def _wait(self, told: str, retries: int, ends: float, source: str, status: int) -> None:
        seconds = _seconds(told, 2.0**retries)
        if seconds > self.limits.longest_wait_s or self.clock() + seconds > ends:
            raise PricesUnreachable(source, f"HTTP {status}, asks to wait {seconds:.0f} s")
        self.pause(seconds)


def _seconds(told: str, otherwise: float) -> float:
    """A Retry-After header, in either of its two forms."""
    if told.strip().isdigit():
        return float(told)
    try:
        return max(0.0, parsedate_to_datetime(told).timestamp() - time.time())
    except (TypeError, ValueError):
        return otherwise
