"""One message in, one answer out: conversation, parsing, rules and words together, the same for every surface.

`answer` never raises for what a user typed: a message that cannot be answered comes back as an `Answered` without
advice, with a sentence that says what is missing or wrong.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from bot.answered import Answered
from bot.answers.concepts import Explanation, correction, explain, topic_of
from bot.answers.words import Words, words
from bot.questions.dialogue import Conversation, Heard, Turn, workload_of
from bot.questions.followup import TRAINING
from bot.questions.open_points import Point, deciding_point
from bot.questions.parsed import Parsed
from bot.questions.workload import to_workload
from rules.advice.advise import advise
from rules.advice.types import Advice
from rules.catalog.accelerators import Accelerator
from rules.catalog.catalogue import Catalogue
from rules.catalog.cpus import Cpu
from rules.catalog.errors import CatalogError, UnknownName
from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Note, Param
from rules.memory.usable import usable_bytes
from rules.policy import Policy, default_policy
from rules.records import dataclass
from rules.units import to_gib
from rules.workload import Constraints, Money, Traffic, Workload

if TYPE_CHECKING:  # imported when an explanation or a comparison is asked for
    from bot.answers.concepts.figures import Facts
    from rules.advice.compare import Comparison

_FEWER_TOKENS = "verdict_tight_fewer_tokens"
_MOST_QUESTIONS = 2  # about one workload; a third is an interrogation
_TOO_SLOW_ON_CPU = ("llm", "diffusion")
_BUYS = ("cost",)
_NO_WORKLOAD = ("hardware_alone", "not_understood")  # nothing to size, but perhaps something to explain


@dataclass(frozen=True, slots=True)
class _Refused:
    """Why there is no advice: a message id with its parameters."""

    message: str
    params: Mapping[str, Any]


def answer(
    text: str,
    *,
    catalogue: Catalogue,
    policy: Policy | None = None,
    lang: str | None = None,
    conversation: Conversation | None = None,
    as_of: date | None = None,
) -> Answered:
    """Answers one message of a conversation (None: its first).

    `lang` overrides the language of the message; `as_of` is the day for the age of prices (None: not judged).
    """
    before = conversation or Conversation()
    policy = policy or default_policy()
    heard = before.hear(text, catalogue, policy)
    say = words(lang or heard.parsed.lang)
    one = _Answering(before, heard, say, catalogue, policy, as_of)
    return one.answered()


class _Answering:
    """The work on one message."""

    def __init__(
        self,
        before: Conversation,
        heard: Heard,
        say: Words,
        catalogue: Catalogue,
        policy: Policy,
        as_of: date | None,
    ) -> None:
        self._as_of = as_of
        self._before = before
        self._heard = heard
        self._parsed = heard.parsed
        self._say = say
        self._catalogue = catalogue
        self._policy = policy

    def answered(self) -> Answered:
        if self._heard.kind == "thanks":
            return self._without("thanks_reply")
        if self._adds_nothing() and topic_of(self._parsed.text) is not None and (told := self._explained()) is not None:
            return told
        if self._heard.kind == "nothing_new":
            return self._nothing_new()
        if self._parsed.intent == "help":
            return self._without("help_text")
        if self._parsed.intent == "concept" and (explained := self._explained()) is not None:
            return explained
        if self._parsed.extra.get("compare") and (compared := self._compared()) is not None:
            return compared
        return self._advised()

    def _adds_nothing(self) -> bool:
        """A later message that leaves the workload as it was: it may ask about something ("do I need AVX-512?")."""
        was = self._before.understood
        return self._heard.follows and was is not None and workload_of(self._parsed) == workload_of(was)

    def _advised(self) -> Answered:
        asks_money = self._parsed.intent in _BUYS or "hours_per_week" in self._parsed.fields
        found = self._advice(self._parsed, compare_costs=asks_money)
        if isinstance(found, _Refused):
            if found.message == "hardware_alone":
                return self._hardware_alone()
            if (
                found.message in _NO_WORKLOAD
                and topic_of(self._parsed.text)
                and (told := self._explained()) is not None
            ):
                return told
            return self._without(found.message, found.params)
        point = self._point(found)
        remarks = [*self._heard.remarks, *self._problems(), *self._not_taken_up()]
        if self._parsed.intent == "time" and "time" not in found.headlines and found.outcome != "oom":
            remarks.append(Note("remark_speed_not_known"))
        if (misreading := correction(self._parsed.text)) is not None:
            remarks.append(misreading)
        if (changed := self._since_before(found)) is not None:
            remarks.append(changed)
        return self._done(point, advice=found, remarks=tuple(remarks))

    def _hardware_alone(self) -> Answered:
        """Machines without a model: what they are and cost is told; whether it fits needs more."""
        priced = self._parsed.intent in _BUYS
        facts: list[Note] = []
        for item in self._parsed.fields.get("hardware", ()):
            try:
                device = self._catalogue.find_accelerator(item["name"], self._parsed.fields.get("gpu_mem_gb"))
            except UnknownName:
                continue
            machine = Note("machine", {"device": device.name, "count": item["count"]})
            usable_gib = to_gib(usable_bytes(device))
            params: dict[str, Param] = {
                "machine": machine,
                "usable_gib": usable_gib,
                "rate_gb_s": device.bandwidth_gb_s,
            }
            facts.append(Note("device_facts", params))
            if priced:
                facts.extend(self._machine_cost(device, item["count"], len(facts) == 1))
        return self._without("hardware_cost_model" if priced else "hardware_alone", facts=facts)

    def _machine_cost(self, device: Accelerator, count: int, first: bool) -> tuple[Note, ...]:
        from rules.advice.machine_cost import MachineUse, machine_cost

        fields, extra = self._parsed.fields, self._parsed.extra
        rate = extra.get("rent_per_hour")
        currency = str(extra.get("currency", "USD"))
        named = Money(amount=str(rate), currency=currency, per="hour") if rate and not first else None
        use = MachineUse(hours=extra.get("hours"), hours_per_week=fields.get("hours_per_week"), rent_per_hour=named)
        kwh = extra.get("kwh_price")
        limits = Constraints(
            location=extra.get("region"),
            kwh_price=Money(amount=str(kwh), currency=currency, per="kwh") if kwh else None,
        )
        return machine_cost(device, count, use, limits, Traffic(), self._catalogue, self._policy)

    def _explained(self) -> Answered | None:
        topic = topic_of(self._parsed.text)
        advice = self._advice(self._parsed)
        usable = advice if isinstance(advice, Advice) else None
        if topic is None:
            return None if usable else self._without("concept_unknown")
        facts = self._facts(usable)
        explanation: Explanation = explain(topic, facts)
        remarks = self._heard.remarks if self._heard.kind == "question" else ()
        beside = usable if usable is not None and self._parsed.fields.get("hardware") else None
        return self._done(None, explanation=explanation, advice=beside, remarks=remarks)

    def _facts(self, advice: Advice | None) -> Facts:
        parsed, catalogue = self._parsed, self._catalogue
        device, cpu, count = self._devices()
        model: ModelSpec | None = None
        fields = parsed.fields
        if fields.keys() & {"model", "params_b"}:
            try:
                model = catalogue.find_model(
                    fields.get("model"), fields.get("params_b"), fields.get("active_params_b")
                ).spec
            except (CatalogError, UnsupportedWorkload):
                model = None
        from bot.answers.concepts.figures import Facts

        return Facts(
            policy=self._policy,
            model=model,
            device=device,
            count=count,
            cpu=cpu,
            advice=advice,
            tp=parsed.extra.get("tp"),
        )

    def _devices(self) -> tuple[Accelerator | None, Cpu | None, int]:
        items = self._parsed.fields.get("hardware", ())
        if not items:
            return None, None, int(self._parsed.extra.get("gpu_count", 1))
        name, count = items[0]["name"], items[0]["count"]
        try:
            return self._catalogue.find_accelerator(name, self._parsed.fields.get("gpu_mem_gb")), None, count
        except UnknownName:
            pass
        try:
            return None, self._catalogue.find_cpu(name), count
        except UnknownName:
            return None, None, count

    def _compared(self) -> Answered | None:
        workloads = [to_workload(each, self._catalogue) for each in _alternatives(self._parsed)]
        known = [w for w in workloads if w is not None and (w.model.name or w.model.params_b)]
        if len(known) < 2 or len(known) < len(workloads):
            return None
        from rules.advice.compare import compare

        comparison: Comparison = compare(known, self._catalogue, self._policy)
        remarks = (*self._heard.remarks, *self._problems(), *self._not_taken_up())
        return self._done(None, comparison=comparison, remarks=remarks)

    def _nothing_new(self) -> Answered:
        """A reply that changes nothing: what stands is said again, with its question if one is open."""
        if self._before.understood is None:
            return self._without("nothing_asked_yet")
        found = self._advice(self._parsed)
        if isinstance(found, _Refused):
            return self._without(found.message, found.params)
        note = self._heard.remarks[0] if self._heard.remarks else Note("remark_nothing_asked")
        return self._without(note.message, note.params, point=self._before.asked)

    def _advice(self, parsed: Parsed, *, compare_costs: bool = False) -> Advice | _Refused:
        workload: Workload | None = to_workload(parsed, self._catalogue)
        if workload is None:
            facts = parsed.fields.keys() - {"location"}
            return _Refused("hardware_alone" if facts & {"hardware", "gpu_mem_gb"} else "not_understood", {})
        if not workload.model.name and not workload.model.params_b:
            return _Refused("missing_model", {})
        try:
            return advise(workload, self._catalogue, self._policy, self._as_of, compare_costs=compare_costs)
        except UnknownName as error:
            return _Refused("unknown_name" if error.suggestions else "unknown_name_bare", error.params)
        except (CatalogError, UnsupportedWorkload) as error:
            return _Refused(error.message_id, error.params)

    def _verdict(self, parsed: Parsed) -> Hashable | None:
        """What tells verdicts apart: whether it runs, and, where the cache is short, how many tokens each gets (by
        factors of four); without hardware, which machine it takes."""
        found = self._advice(parsed)
        if isinstance(found, _Refused):
            return None
        if parsed.fields.keys() & {"hardware", "gpu_mem_gb", "cpu_only"}:
            each = found.verdict.params.get("tokens_each") if found.verdict.message == _FEWER_TOKENS else None
            return found.outcome == "oom", int(math.log(each, 4)) if isinstance(each, int) and each > 0 else None
        first = found.options[0] if found.options else None
        machine = (first.hardware, first.count) if first is not None else ("none", 0)
        return (found.workload.kind, *machine)  # running and training are two answers even on one card

    def _point(self, advice: Advice) -> Point | None:
        parsed = self._parsed
        spoilt = [p.field for p in parsed.problems if p.field and self._say.knows(f"ask_{p.field}")]
        if spoilt:
            return Point(spoilt[0])
        if parsed.intent == "benchmark":
            return Point("host") if "host" in parsed.ask else None
        if len(self._before_settled()) >= _MOST_QUESTIONS:
            return None
        return deciding_point(parsed, self._verdict, self._catalogue, self._policy, self._before_settled())

    def _before_settled(self) -> frozenset[str]:
        return self._before.settled if self._heard.follows else frozenset()

    def _problems(self) -> list[Note]:
        return [Note(p.id, p.params) for p in self._parsed.problems if self._say.knows(p.id)]

    def _not_taken_up(self) -> list[Note]:
        """What was asked and is not answered: training a large model on a CPU."""
        known = {**self._parsed.extra, **self._parsed.fields}
        if known.get("cpu_only") and known.get("task") in TRAINING and known.get("domain", "llm") in _TOO_SLOW_ON_CPU:
            return [Note("remark_training_not_on_cpu")]
        return []

    def _since_before(self, advice: Advice) -> Note | None:
        """How the need moved since the answer before, where it was about the same model and moved."""
        if not self._heard.follows or not self._before.turns or not advice.options:
            return None
        last = self._before.turns[-1]
        best = advice.options[0]
        if last.need_gib is None or last.machine is None or last.outcome is None:
            return None
        same_need = abs(last.need_gib - best.need.expected_gib) < 0.05
        if same_need and last.machine == (best.hardware, best.count):
            return None
        machine = Note("machine", {"device": last.machine[0], "count": last.machine[1]})
        outcome = Note(f"outcome_{last.outcome}")
        return Note("line_before", {"need_gib": last.need_gib, "machine": machine, "outcome": outcome})

    def _without(
        self,
        message: str,
        params: Mapping[str, Any] | None = None,
        *,
        facts: Sequence[Note] = (),
        point: Point | None = None,
    ) -> Answered:
        first = [self._say.say(note) for note in (*self._problems(), *facts)]
        text = " ".join([*first, self._say.say(message, params or {})])
        return self._done(point, problem=text, problem_id=message)

    def _done(self, point: Point | None, **parts: Any) -> Answered:
        advice: Advice | None = parts.get("advice")
        best = advice.options[0] if advice is not None and advice.options else None
        turn = Turn(
            text=self._parsed.text,
            verdict=advice.verdict if advice else None,
            outcome=advice.outcome if advice else None,
            need_gib=best.need.expected_gib if best else None,
            machine=(best.hardware, best.count) if best else None,
        )
        asked = (self._say(f"ask_{point.id}"),) if point is not None else ()
        return Answered(
            parsed=self._parsed,
            words=self._say,
            conversation=self._before.after(self._heard, turn, point),
            questions=asked,
            choices=point.choices if point is not None else (),
            **parts,
        )


def _alternatives(parsed: Parsed) -> list[Parsed]:
    """The question once for each set-up that it compares."""
    told = []
    for change in parsed.extra["compare"]:
        fields = {k: v for k, v in parsed.fields.items() if not (k == "gpu_mem_gb" and "hardware" in change)}
        if "model" in change or "params_b" in change:
            fields = {k: v for k, v in fields.items() if k not in ("model", "params_b", "active_params_b")}
        told.append(dataclasses.replace(parsed, fields=fields | dict(change)))
    return told
