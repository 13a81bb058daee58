"""How a run is spread over devices: the parallel plan behind words like `zero1+tp2+pp4` or `fsdp8+cp2`.

Shared by training and inference. Degrees are numbers of devices. The words are those people write: `tp`, `pp`, `cp`,
`ep`, `sp` (Ulysses or DeepSpeed sequence parallelism), `dp`, `ddp`, `zero1`..`zero3`, `fsdp`, `device_map`.
"""

from __future__ import annotations

import re

from rules.catalog.models import ModelSpec
from rules.memory.footprint import Note
from rules.records import dataclass

_WORD = re.compile(r"(device_?map|hsdp|fsdp|zero|ddp|dp|tp|pp|cp|ep|etp|sp|vp)[-_ =:x]*(\d+)?", re.IGNORECASE)
_MOST = 1 << 20  # no plan has more devices than this in one dimension


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelPlan:
    """Degrees of each kind of parallelism. `zero_stage` 0 means that replicas hold everything (DDP or one device).

    `state_degree` is how many devices share the optimizer states (and gradients, weights by stage) of dense
    parameters, `expert_state_degree` the same for routed experts. `sp` splits sequences over data-parallel ranks.
    """

    devices: int = 1
    dp: int = 1
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    sp: int = 1
    vp: int = 1
    zero_stage: int = 0
    fsdp: bool = False
    replicas: bool = False
    device_map: bool = False
    state_degree: int = 1
    expert_state_degree: int = 1
    sequence_parallel: bool = False

    @property
    def sharded(self) -> bool:
        """True where one device holds less than one whole copy of model and states."""
        return self.zero_stage > 0 or max(self.tp, self.pp, self.cp, self.ep, self.sp) > 1 or self.device_map

    @property
    def distributed(self) -> bool:
        """True where devices talk to each other while running."""
        return self.devices > 1

    @property
    def weight_degree(self) -> int:
        """Ranks that share the weights by ZeRO-3 or FSDP (on top of tensor and pipeline parallelism)."""
        return self.state_degree if self.zero_stage >= 3 else 1

    @property
    def grad_degree(self) -> int:
        """Ranks that share the gradients by ZeRO-2, ZeRO-3 or FSDP."""
        return self.state_degree if self.zero_stage >= 2 else 1

    @property
    def sequence_split(self) -> int:
        """Parts that one sequence is cut into on entry: context and Ulysses parallelism."""
        return self.cp * self.sp


def _degree(value: object) -> int | None:
    try:
        number = int(float(value))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return min(number, _MOST) if number >= 1 else None


def parallel_plan(
    sharding: str | None = None,
    devices: int | None = None,
    *,
    dp: int | None = None,
    tp: int | None = None,
    pp: int | None = None,
    cp: int | None = None,
    ep: int | None = None,
    vp: int | None = None,
    sequence_parallel: bool | None = None,
    default_stage: int = 0,
) -> ParallelPlan:
    """The plan that words and stated degrees describe; stated degrees win over words. Never raises.

    `devices` is the number in the whole job; when it is unknown it is the product of the degrees. `default_stage` is
    the ZeRO stage of data-parallel ranks where the words name none.
    """
    words: dict[str, int | None] = {}
    for word, number in _WORD.findall(sharding or ""):
        words[word.lower().replace("_", "")] = _degree(number) if number else None

    def of(name: str, stated: int | None) -> int:
        return _degree(stated) or words.get(name) or 1

    d_tp, d_pp, d_cp, d_ep = of("tp", tp), of("pp", pp), of("cp", cp), of("ep", ep)
    d_sp, d_vp = of("sp", None), of("vp", vp)
    total = max(_degree(devices) or 1, words.get("devicemap") or 1)
    fsdp = "fsdp" in words or "hsdp" in words
    shard_words = words.get("fsdp")
    if shard_words == 2 and total > 2 and d_tp * d_pp * d_cp * d_ep == 1:
        shard_words = None  # "fsdp2" on many devices is the second version of FSDP, not a degree
    # Where the product of the degrees says more than the device count, the degrees are believed.
    least = d_tp * d_pp * (shard_words if shard_words and shard_words >= d_cp else d_cp * d_sp)
    total = max(total, least)
    d_dp = _degree(dp) or words.get("dp") or max(1, total // (d_tp * d_pp * d_cp))
    if d_ep > d_dp * d_cp * d_tp:
        d_dp = max(d_dp, d_ep // (d_cp * d_tp))
    total = max(total, d_dp * d_tp * d_pp * d_cp)
    stage = 0
    if fsdp:
        stage = 3
    elif "zero" in words:
        stage = min(3, words["zero"] or 3)
    elif default_stage and d_dp * d_cp > 1 and "ddp" not in words:
        stage = default_stage
    degree = shard_words or d_dp * d_cp
    expert_ranks = max(1, d_dp * d_cp * d_tp // (d_ep * d_tp if d_ep > 1 else d_tp))
    expert_degree = max(1, shard_words // d_ep) if shard_words else expert_ranks
    if d_ep > 1 and not shard_words:
        expert_degree = max(1, d_dp * d_cp // d_ep)
    return ParallelPlan(
        devices=total,
        dp=d_dp,
        tp=d_tp,
        pp=d_pp,
        cp=d_cp,
        ep=d_ep,
        sp=d_sp,
        vp=d_vp,
        zero_stage=stage,
        fsdp=fsdp,
        replicas=d_dp > 1 and stage == 0,
        device_map="devicemap" in words,
        state_degree=degree if stage else 1,
        expert_state_degree=expert_degree if stage else 1,
        sequence_parallel=bool(sequence_parallel) if sequence_parallel is not None else d_tp > 1,
    )


def plan_problems(plan: ParallelPlan, model: ModelSpec) -> tuple[Note, ...]:
    """Why the plan cannot run as stated: degrees that do not divide what they split. Empty when it is sound."""
    notes: list[Note] = []

    def check(part: str, size: int | None, degree: int) -> None:
        if size and degree > 1 and size % degree:
            notes.append(Note("parallel_degree_does_not_divide", {"part": part, "size": size, "degree": degree}))

    check("heads", model.heads, plan.tp)
    if model.kv_heads and plan.tp > model.kv_heads:
        notes.append(Note("kv_heads_replicated", {"kv_heads": model.kv_heads, "degree": plan.tp}))
    elif model.kv_heads:
        check("kv_heads", model.kv_heads, plan.tp)
    check("heads", model.heads, plan.sp)
    if model.layers and plan.pp > model.layers:
        notes.append(Note("more_stages_than_layers", {"layers": model.layers, "degree": plan.pp}))
    if model.moe:
        check("experts", model.moe.experts, plan.ep)
    elif plan.ep > 1:
        notes.append(Note("expert_parallel_without_experts", {"degree": plan.ep}))
    return tuple(notes)
