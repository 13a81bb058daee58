"""What a service must carry: sequences at once, requests and tokens a second at the peak, and the targets.

Traffic is told in many forms (users, requests a second, tokens a day); here each becomes the same few figures, with
what was taken where nobody said. Rates are a second and at the peak, times are seconds, lengths are tokens.
"""

from __future__ import annotations

import math
from dataclasses import replace

from rules.advice.types import Assumption
from rules.policy import Policy
from rules.records import dataclass
from rules.units import SECONDS_PER_DAY
from rules.workload import Given, InferenceWorkload

_DAYS_A_MONTH = 365 / 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Traffic at the peak and its targets; None where nothing was said that gives the figure.

    `concurrency` is sequences in flight; `answer_tok_s` is generated tokens of all streams. `requests_s` is the peak,
    `mean_requests_s` the mean over the hours in which the service runs.
    """

    prompt_tokens: int
    answer_tokens: int
    concurrency: int | None = None
    requests_s: float | None = None
    mean_requests_s: float | None = None
    ttft_s: float | None = None
    latency_s: float | None = None
    tpot_s: float | None = None
    assumptions: tuple[Assumption, ...] = ()

    @property
    def answer_tok_s(self) -> float | None:
        """Generated tokens a second at the peak, where a rate of requests is known."""
        return None if self.requests_s is None else self.requests_s * self.answer_tokens

    @property
    def is_rate(self) -> bool:
        """True where traffic was told as a rate."""
        return self.requests_s is not None

    @property
    def targets(self) -> dict[str, float | None]:
        """The times asked for, by the names under which the laws of serving take them."""
        return {"ttft_s": self.ttft_s, "tpot_s": self.tpot_s, "latency_s": self.latency_s}

    @property
    def has_target(self) -> bool:
        """True where a time was asked for."""
        return self.ttft_s is not None or self.latency_s is not None or self.tpot_s is not None

    @property
    def told(self) -> bool:
        """True where the question says anything about load or times."""
        return self.concurrency is not None or self.is_rate or self.has_target


def demand_of(workload: InferenceWorkload, policy: Policy, generates: bool = True) -> Demand:
    """The demand of a workload whose silent fields are filled; `generates` is False where a request has no answer."""
    assumed: list[Assumption] = []
    prompt, answer = _lengths(workload, policy, generates, assumed)
    traffic = workload.traffic
    mean = traffic.requests_per_s
    peak = traffic.peak_requests_per_s
    if mean is None and traffic.requests_per_month is not None:
        mean = traffic.requests_per_month / (_DAYS_A_MONTH * SECONDS_PER_DAY)
    if mean is None and traffic.tokens_per_day is not None:
        mean = traffic.tokens_per_day / (prompt + answer) / SECONDS_PER_DAY
    by_day = traffic.requests_per_s is None and mean is not None
    if peak is None and mean is not None:
        peak = mean * policy.traffic.peak_over_mean if by_day else mean
        if by_day:
            assumed.append(Assumption("peak_over_mean", policy.traffic.peak_over_mean, "default_peak_over_mean"))
    at_once = workload.concurrency or workload.batch
    concurrency = traffic.concurrency
    if concurrency is None and (traffic.users is not None or (at_once is not None and at_once.origin == "stated")):
        concurrency = at_once.value if at_once is not None else traffic.users
    per_stream = traffic.tokens_per_s_per_user
    return Demand(
        prompt_tokens=prompt,
        answer_tokens=answer,
        concurrency=concurrency,
        requests_s=peak,
        mean_requests_s=mean if mean is not None else peak,
        ttft_s=_seconds(traffic.ttft_ms),
        latency_s=_seconds(traffic.latency_ms),
        tpot_s=1.0 / per_stream if per_stream else None,
        assumptions=tuple(assumed),
    )


def with_lengths(workload: InferenceWorkload, demand: Demand) -> InferenceWorkload:
    """The workload of a language model with the demand's lengths where it says none."""
    return replace(
        workload,
        input_len=workload.input_len or Given(demand.prompt_tokens, "assumed", "default_prompt_tokens"),
        output_len=workload.output_len or Given(demand.answer_tokens, "assumed", "default_answer_tokens"),
    )


def _seconds(ms: float | None) -> float | None:
    return ms / 1000 if ms is not None and ms > 0 and math.isfinite(ms) else None


def _lengths(
    workload: InferenceWorkload, policy: Policy, generates: bool, assumed: list[Assumption]
) -> tuple[int, int]:
    """Tokens in and out of a request: as stated, else an ordinary turn cut to the stated context."""
    context = workload.context.value if workload.context is not None else None
    if not generates:
        return (workload.input_len.value if workload.input_len else context or policy.traffic.prompt_tokens), 0
    answer = workload.output_len.value if workload.output_len else None
    prompt = workload.input_len.value if workload.input_len else None
    told_context = context if workload.context is not None and workload.context.origin == "stated" else None
    if answer is None:
        answer = policy.traffic.answer_tokens
        if told_context is not None:
            answer = max(1, min(answer, told_context // 3))
        assumed.append(Assumption("output_len", answer, "default_answer_tokens"))
    if prompt is None:
        prompt = policy.traffic.prompt_tokens
        if told_context is not None:  # whoever states a length means to use it
            prompt = max(1, told_context - answer)
        assumed.append(Assumption("input_len", prompt, "default_prompt_tokens"))
    return prompt, answer
