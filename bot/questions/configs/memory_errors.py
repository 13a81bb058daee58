"""Out-of-memory messages: which card (by the memory it reports), what was asked for, what was in use.

The patterns are data (`tables/memory_errors.toml`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import tomli

from bot.questions.configs.config_read import Fact
from rules.records import dataclass

_UNITS = {"bytes": 1, "": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
          "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}  # fmt: skip
_SIZES = {"asked": "requested_gib", "used": "used_gib", "free": "free_gib", "reserved": "reserved_gib",
          "allocated": "allocated_gib", "capacity": "device_memory_gib"}  # fmt: skip
_GIB = 2**30
_LEAST_SHOWN = 0.9  # a card shows a program at least this share of the memory on its label
_MOST = 8
_HEAD_REACH = 200
_HEAD = re.compile(r"(?:[\w.]{0,60}(?:Error|Exception)\b[\w.: ]{0,60})?(?:(?:CUDA|HIP) out of memory\. ?)?$")
_CUES = ("llocat", "KV cache", "Free memory", "out of memory", "system memory")


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """One message `start:end` with its sizes in GiB and lengths in tokens."""

    start: int
    end: int
    facts: Mapping[str, Fact]
    framework: str | None
    task: str | None


@cache
def _messages() -> tuple[tuple[re.Pattern[str], Mapping[str, str]], ...]:
    table = tomli.loads(Path(__file__).with_name("tables").joinpath("memory_errors.toml").read_text("utf-8"))
    return tuple((re.compile(message["pattern"]), message) for message in table["message"])


def read_memory_errors(text: str) -> list[OutOfMemory]:
    """Every message of the text; where several patterns read the same words, the fullest one counts."""
    if not any(cue in text for cue in _CUES):
        return []
    found: list[OutOfMemory] = []
    for pattern, message in _messages():
        for match in pattern.finditer(text):
            if len(found) >= _MOST:
                return found
            if any(match.start() < f.end and f.start < match.end() for f in found):
                continue
            found.append(
                OutOfMemory(match.start(), match.end(), _facts(match), message.get("framework"), message.get("task"))
            )
    return sorted(found, key=lambda f: f.start)


def marketed_gb(shown_gib: float, sizes: Iterable[float]) -> float:
    """The label's memory (GB) of a card that shows `shown_gib`: the smallest size that can show so much."""
    possible = [size for size in sizes if size * _LEAST_SHOWN <= shown_gib <= size]
    return min(possible, default=shown_gib)


def line_range(text: str, error: OutOfMemory) -> tuple[int, int]:
    """The lines of the message, with the rest of the sentence that the pattern did not need."""
    start = text.rfind("\n", 0, error.start) + 1
    newline = text.find("\n", error.end)
    end = len(text) if newline < 0 else newline
    head = _HEAD.search(text[start : error.start][-_HEAD_REACH:])
    at = error.start - len(head.group(0)) if head else error.start
    tail = text[error.end : end]
    advice = re.match(r"[^\n]{0,400}?(?:PYTORCH_(?:CUDA_|HIP_)?ALLOC_CONF\S*|initializing the engine\.)", tail)
    return at, error.end + (advice.end() if advice else 0)


def _facts(match: re.Match[str]) -> dict[str, Fact]:
    groups = match.groupdict()
    facts: dict[str, Fact] = {}
    for name, field in _SIZES.items():
        if groups.get(name):
            unit = groups.get(f"{name}_u") or groups.get("capacity_u") if name == "free" else groups.get(f"{name}_u")
            try:
                size = float(groups[name]) * _UNITS[unit or ""] / _GIB
            except (ValueError, KeyError):
                continue
            facts[field] = Fact(round(size, 2), *match.span(name))
    for name, field in (("context", "context"), ("pool", "kv_cache_tokens"), ("length_limit", "context_limit")):
        if groups.get(name) and len(groups[name]) <= 9:
            facts[field] = Fact(int(groups[name]), *match.span(name))
    return facts
