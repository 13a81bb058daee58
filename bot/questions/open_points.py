"""Points that a question leaves open: which one decides the verdict, and the choices to answer it with.

A point is put to the user only where its choices, each really judged, lead to different verdicts; everything else is
assumed and said. The points are data (`open_points.toml`).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any

import tomli

from bot.questions.followup import settle_task
from bot.questions.parse import finish
from bot.questions.parsed import Parsed
from rules.catalog.accelerators import Accelerator
from rules.catalog.catalogue import Catalogue
from rules.catalog.errors import UnknownName
from rules.policy import Policy
from rules.records import dataclass

Verdict = Callable[[Parsed], Hashable | None]
_MEMORY_IN_NAME = re.compile(r"[ \-]\d+GB")
_FORM_IN_NAME = re.compile(r" (?:PCIe|SXM\d?|NVL)\b|\(.*?\)")


@dataclass(frozen=True, slots=True)
class Choice:
    """One ready answer. `fields` and `extra` are what it sets, `drop` what it takes away from the question.

    `id` is `point.choice`; its label is the message `choice_<point>_<choice>` (or `label`) with `params`.
    """

    id: str
    label: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    said: tuple[str, ...] = ()  # words that pick it beside those of the language files

    def applied(self, parsed: Parsed) -> Parsed:
        """The question with this choice made."""
        extra = {k: v for k, v in parsed.extra.items() if k not in self.drop}
        fields = {k: v for k, v in parsed.fields.items() if k not in self.drop}
        chosen = dict(self.fields)
        settle_task(fields, extra, chosen)
        fields |= chosen
        extra |= self.extra
        assumed = {k: v for k, v in parsed.assumed.items() if k not in self.fields}
        intent = "fit" if parsed.intent in ("unclear", "followup") else parsed.intent
        changed = dataclasses.replace(parsed, intent=intent, fields=fields, extra=extra, assumed=assumed)
        return finish(changed, frozenset(("hardware",)) if intent == "recommend" else frozenset())


@dataclass(frozen=True, slots=True)
class Point:
    """A question back: the message `ask_<id>`, its choices, and which of them a bare yes or no means."""

    id: str
    choices: tuple[Choice, ...] = ()
    yes: str | None = None
    no: str | None = None


@cache
def _table() -> tuple[Mapping[str, Any], ...]:
    text = Path(__file__).with_name("open_points.toml").read_text("utf-8")
    return tuple(tomli.loads(text)["point"])


def deciding_point(
    parsed: Parsed, verdict: Verdict, catalogue: Catalogue, policy: Policy, settled: frozenset[str]
) -> Point | None:
    """The first open point whose choices give different verdicts; points in `settled` are not put again."""
    for point in _open(parsed, catalogue, policy):
        if point.id in settled or len(point.choices) < 2:
            continue
        found = {verdict(choice.applied(parsed)) for choice in point.choices} - {None}
        if len(found) > 1:
            return point
    return None


def choices_of(parsed: Parsed, catalogue: Catalogue, policy: Policy) -> Iterator[Choice]:
    """Every choice that a short reply may mean although nobody asked: of all points that apply, answered or not."""
    for row in _table():
        when = {name: allowed for name, allowed in row.get("when", {}).items() if name != "intent"}
        if _holds({"when": when, "said": row.get("said", ())}, parsed):
            yield from _choices(row, parsed, catalogue, policy)


def _open(parsed: Parsed, catalogue: Catalogue, policy: Policy) -> Iterator[Point]:
    for row in _table():
        if not _holds(row, parsed):
            continue
        yield Point(row["id"], _choices(row, parsed, catalogue, policy), _named(row, "yes"), _named(row, "no"))


def _choices(row: Mapping[str, Any], parsed: Parsed, catalogue: Catalogue, policy: Policy) -> tuple[Choice, ...]:
    if "from" in row:
        return _DERIVED[row["from"]](parsed, catalogue, policy)
    return tuple(
        Choice(
            id=f"{row['id']}.{c['id']}",
            label=f"choice_{row['id']}_{c['id']}",
            fields=c.get("fields", {}),
            extra=c.get("extra", {}),
            drop=tuple(c.get("drop", ())),
        )
        for c in row["choice"]
    )


def _named(row: Mapping[str, Any], key: str) -> str | None:
    return f"{row['id']}.{row[key]}" if key in row else None


def _holds(row: Mapping[str, Any], parsed: Parsed) -> bool:
    known: dict[str, Any] = {**parsed.extra, **parsed.fields, "intent": parsed.intent}
    if any(name in known for name in row.get("unsaid", ())):
        return False
    if not all(name in known for name in row.get("said", ())):
        return False
    if not all(name in parsed.assumed or name not in known for name in row.get("assumed", ())):
        return False
    return all(known.get(name, "nothing") in allowed for name, allowed in row.get("when", {}).items())


def _variants_of_the_card(parsed: Parsed, catalogue: Catalogue, policy: Policy) -> tuple[Choice, ...]:
    """The memory sizes of a data-centre card that was named without one (A100: 40 or 80 GB)."""
    items = parsed.fields["hardware"]
    if len(items) != 1 or parsed.fields.get("cpu_only") or _MEMORY_IN_NAME.search(items[0]["name"]):
        return ()
    try:
        device = catalogue.find_accelerator(items[0]["name"])
    except UnknownName:
        return ()
    if device.tier != "datacenter":
        return ()
    sizes = sorted({a.memory_gb_marketed for a in catalogue.accelerators if _family(a) == _family(device)})
    return tuple(
        Choice(
            id=f"memory_variant.{size:g}",
            label="choice_memory_variant",
            fields={"gpu_mem_gb": round(size)},
            params={"gb": round(size)},
            said=(f"{size:g}", f"{size:g}gb", f"{size:g} gb", f"{size:g}g"),
        )
        for size in sizes
    )


def _family(device: Accelerator) -> str:
    return _FORM_IN_NAME.sub("", _MEMORY_IN_NAME.sub("", device.name)).strip()


def _people_at_once(parsed: Parsed, catalogue: Catalogue, policy: Policy) -> tuple[Choice, ...]:
    """People all at once, or in total with the usual share of them active."""
    people = int(parsed.extra["users"])
    if parsed.fields.get("concurrency") not in (None, people):
        return ()
    active = max(1, round(people * policy.concurrency.active_share_of_users))
    if active == people:
        return ()
    return (
        Choice("people.at_once", "choice_people_at_once", {"concurrency": people}, drop=("users",)),
        Choice("people.in_total", "choice_people_in_total", {"concurrency": active}, params={"active": active}),
    )


_DERIVED: dict[str, Callable[[Parsed, Catalogue, Policy], tuple[Choice, ...]]] = {
    "variants_of_the_card": _variants_of_the_card,
    "people_at_once": _people_at_once,
}
