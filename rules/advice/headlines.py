"""The line that answers what was asked beside memory: how long, how fast, how many, each with its figures and range."""

from __future__ import annotations

from collections.abc import Sequence

from rules.advice.demand import Demand
from rules.advice.types import Capacity, Option
from rules.memory.footprint import Note, Param
from rules.policy import Policy
from rules.speed.types import Figure, InferenceSpeed, TrainingSpeed

_DAY_S, _HOUR_S, _MINUTE_S = 86_400.0, 3600.0, 60.0
_LONG_DAYS = 2.0


def duration(seconds: float) -> Note:
    """A time in the unit in which people say it."""
    if seconds >= _LONG_DAYS * _DAY_S:
        return Note("duration_days", {"n": seconds / _DAY_S})
    if seconds >= 1.5 * _HOUR_S:
        return Note("duration_hours", {"n": seconds / _HOUR_S})
    if seconds >= 1.5 * _MINUTE_S:
        return Note("duration_minutes", {"n": seconds / _MINUTE_S})
    if seconds >= 1.0:
        return Note("duration_seconds", {"n": seconds})
    return Note("duration_milliseconds", {"n": seconds * 1000})


def _times(figure: Figure) -> dict[str, Param]:
    return {
        "time": duration(figure.expected),
        "low": duration(figure.low),
        "high": duration(figure.high),
    }


def _rates(figure: Figure) -> dict[str, Param]:
    return {"rate": figure.expected, "low_rate": figure.low, "high_rate": figure.high}


def machine_of(option: Option) -> Note:
    """The devices of an option, all replicas together."""
    return Note("machine", {"device": option.hardware, "count": option.devices})


def time_headline(option: Option) -> Note | None:
    """How long the run takes, or how fast it goes where no amount of work was told (T12)."""
    found = option.speed
    if found is None:
        return None
    machine: dict[str, Param] = {"machine": machine_of(option)}
    if isinstance(found, TrainingSpeed):
        rate = found.tokens_per_s_per_device
        whole = Figure(rate.low * found.devices, rate.expected * found.devices, rate.high * found.devices)
        params = {**machine, **_rates(whole)}
        if found.total_s is not None:
            return Note("headline_run_takes", {**params, **_times(found.total_s)}, "T12")
        if found.step_s is not None:
            return Note("headline_training_rate", {**params, **_times(found.step_s)}, "T12")
        return None
    if found.decode_tok_s is not None:
        first: dict[str, Param] = {"first": duration(found.ttft_s.expected)} if found.ttft_s else {}
        message = "headline_decode_rate" if first else "headline_decode_rate_alone"
        return Note(message, {**machine, **_rates(found.decode_tok_s), **first}, "T4")
    if found.realtime_factor is not None:
        return Note("headline_realtime", {**machine, **_rates(found.realtime_factor)}, "I3")
    if found.samples_s is not None:
        if found.latency_s is not None:
            return Note(
                "headline_samples_rate", {**machine, **_rates(found.samples_s), **_times(found.latency_s)}, "I3"
            )
        return Note("headline_samples_rate_alone", {**machine, **_rates(found.samples_s)}, "I3")
    return None


def capacity_headline(option: Option, demand: Demand, policy: Policy) -> Note | None:
    """Whether the option carries what was asked, or the most that it carries, and what stops one more (I4, I6)."""
    carried = option.capacity
    if carried is None:
        return None
    params: dict[str, Param] = {
        "machine": machine_of(option),
        "sequences": carried.sequences * option.replicas,
        "requests_s": carried.requests_s * option.replicas,
        "tok_s": carried.answer_tok_s * option.replicas,
        "limit": Note(f"limit_by_{carried.limited_by}"),
        "prompt": demand.prompt_tokens,
        "answer": demand.answer_tokens,
        "share": policy.capacity.serving_share * 100,
    }
    if carried.sequences == 0:
        return Note("headline_misses_target", params, "I6")
    if isinstance(option.speed, InferenceSpeed) and option.speed.decode_tok_s is None:
        return _rate_headline(option, carried, params)
    if carried.meets is None or carried.share is None:
        return Note("headline_carries_at_most", params, "I4")
    params["used"] = carried.share * 100
    if carried.meets:
        return Note("headline_carries", params, "I4")
    if carried.replicas_needed is None:
        return Note("headline_beyond_replicas", params, "I4")
    params["needed"] = carried.replicas_needed * option.count
    return Note("headline_needs_more", params, "I4")


def _rate_headline(option: Option, carried: Capacity, params: dict[str, Param]) -> Note | None:
    """The same for models that answer in one pass: requests a second, or live streams of speech."""
    speech = isinstance(option.speed, InferenceSpeed) and option.speed.realtime_factor is not None
    kind = "streams" if speech else "rate"
    if carried.meets is None or carried.share is None:
        return Note(f"headline_{kind}_at_most", params, "I4")
    params["used"] = carried.share * 100
    if carried.meets:
        return Note(f"headline_{kind}_carried", params, "I4")
    if carried.replicas_needed is None:
        return Note("headline_misses_target", params, "I6")
    params["needed"] = carried.replicas_needed * option.count
    return Note(f"headline_{kind}_needs_more", params, "I4")


def per_stream_note(option: Option) -> Note | None:
    """Tokens a second of each stream and of all at the load that was asked."""
    found = option.speed
    if not isinstance(found, InferenceSpeed) or found.concurrency <= 1 or found.decode_tok_s is None:
        return None
    if found.total_tok_s is None or found.ttft_s is None:
        return None
    params: dict[str, Param] = {
        "sequences": found.concurrency * option.replicas,
        "each": found.decode_tok_s.expected,
        "total": found.total_tok_s.expected * option.replicas,
        "first": duration(found.ttft_s.expected),
    }
    return Note("note_speed_at_load", params, "I6")


def run_cost_headline(options: Sequence[Option]) -> Note | None:
    """What the whole run costs where it is rented cheapest for the work, of the options whose time is known (T8)."""
    known = [
        (option.cost.usd_per_run, option)
        for option in options
        if option.cost is not None and option.cost.usd_per_run is not None and option.outcome in ("fits", "tight")
    ]
    if not known:
        return None
    usd, cheapest = min(known, key=lambda pair: pair[0])
    found, quote = cheapest.speed, cheapest.cost.quote if cheapest.cost is not None else None
    if not isinstance(found, TrainingSpeed) or found.total_s is None or quote is None:
        return None
    params: dict[str, Param] = {
        "machine": machine_of(cheapest),
        "usd": float(usd),
        "per_hour": float(quote.usd_per_hour),
        "provider": quote.provider,
        **_times(found.total_s),
    }
    return Note("headline_run_cost", params, "T8")


def binds_note(option: Option) -> Note | None:
    """What binds the work, with the seconds of each limit (T4)."""
    found = option.speed
    if found is None or not found.roofline:
        return None
    line = found.roofline[0]
    whole = sum(line.seconds.values())
    if not whole or line.binds not in line.seconds:
        return None
    params: dict[str, Param] = {
        "step": Note(f"step_{line.step}"),
        "binds": Note(f"binds_{line.binds}"),
        "share": 100 * line.seconds.get(line.binds, 0.0) / whole,
        "time": duration(whole),
    }
    return Note("note_binds", params, "T4")
