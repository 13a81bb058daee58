"""How fast a placement of the whole catalogue works, and how many replicas carry the demand: cheap, for ranking."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rules.advice.demand import Demand
from rules.advice.placement import place
from rules.catalog.accelerators import Accelerator
from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.policy import Policy
from rules.records import dataclass
from rules.speed.law import speed
from rules.speed.types import InferenceSpeed, TrainingSpeed
from rules.workload import InferenceWorkload, TrainingWorkload, Workload

if TYPE_CHECKING:  # the laws of a kind of model are imported when a question is about it
    from rules.speed.llm.request import Request


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast one replica of a placement is, and how many replicas carry the demand.

    `rate` is of one replica: tokens a second (all streams, or of a training run), samples or images a second. `meets`
    is False where no number of replicas within the policy does.
    """

    rate: float | None
    replicas: int = 1
    meets: bool = True


UNKNOWN = Pace(None)


class Paces:
    """Paces of one workload; placements of a count are made once on a reference card."""

    def __init__(self, workload: Workload, model: ModelSpec, demand: Demand | None, policy: Policy) -> None:
        self._workload, self._model, self._demand, self._policy = workload, model, demand, policy
        self._placed: dict[int, Workload] = {}

    def of(self, device: Accelerator, count: int) -> Pace:
        """The pace on `count` of `device`; unknown where a rate or a law is missing."""
        placed = self._placed.get(count)
        if placed is None:
            placed = self._placed[count] = place(self._workload, self._model, device, count).workload
        try:
            if isinstance(placed, TrainingWorkload):
                found = speed(placed, self._model, device, count)
                assert isinstance(found, TrainingSpeed)
                return Pace(found.tokens_per_s_per_device.expected * count)
            if self._model.domain != "llm":
                return self._media(placed, device, count)
            demand = self._demand
            assert demand is not None
            from rules.advice.serving_capacity import replica_request
            from rules.speed.llm.law import sequences_held

            request = replica_request(placed, self._model, device, count, demand)
            return self._serving(request, sequences_held(request, device, placed), demand)
        except UnsupportedWorkload:
            return UNKNOWN

    def _serving(self, request: Request, holds: float, demand: Demand) -> Pace:
        """Replicas by doubling the share that each carries: the fewest whose times and rate hold."""
        from rules.speed.llm.serving import missed_target, under_load

        planned = math.inf
        if demand.requests_s is not None:
            planned = under_load(request, holds).requests_s * self._policy.capacity.serving_share
        for replicas in _steps(self._policy.capacity.most_replicas):
            each = (demand.concurrency or 1) / replicas
            if each > holds:
                continue
            load = under_load(request, max(1.0, each))
            if demand.requests_s is not None:
                if planned * replicas < demand.requests_s:
                    continue
                flying = max(1.0, demand.requests_s / replicas * load.latency_s)
                load = under_load(request, min(holds, max(flying, each)))
            if missed_target(request, load, load.concurrency, **demand.targets) is None:
                return Pace(load.total_tok_s, replicas)
            if each <= 1:
                break
        return Pace(under_load(request, min(holds, demand.concurrency or 1)).total_tok_s, 1, False)

    def _media(self, placed: InferenceWorkload, device: Accelerator, count: int) -> Pace:
        found = speed(placed, self._model, device, count)
        assert isinstance(found, InferenceSpeed)
        figure = found.samples_s or found.realtime_factor or found.requests_s
        if figure is None:
            return UNKNOWN
        demand = self._demand
        if demand is None or not demand.requests_s:
            return Pace(figure.expected)
        needed = math.ceil(demand.requests_s / (figure.expected * self._policy.capacity.serving_share))
        late = (
            demand.latency_s is not None and found.latency_s is not None and found.latency_s.expected > demand.latency_s
        )
        return Pace(figure.expected, max(1, needed), needed <= self._policy.capacity.most_replicas and not late)


def _steps(most: int) -> Iterable[int]:
    """1, 2, 3, 4, 6, 8, 12, 16 … up to `most`."""
    step = 1
    while step <= most:
        yield step
        if step >= 2 and step * 3 // 2 <= most:
            yield step * 3 // 2
        step *= 2
