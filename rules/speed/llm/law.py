"""Speed of a language model on given devices: single-stream, prefill and under load, with ranges and what binds."""

from __future__ import annotations

from rules.catalog.accelerators import Accelerator
from rules.catalog.cpus import Cpu
from rules.catalog.models import ModelSpec
from rules.memory.footprint import Note
from rules.speed.llm.constants import spread
from rules.speed.llm.decode import Step, decode_step
from rules.speed.llm.prefill import prefill
from rules.speed.llm.request import Request, resolve
from rules.speed.llm.serving import MOST_SEQUENCES, first_token_seconds, under_load
from rules.speed.types import Binds, Figure, InferenceSpeed, Roofline
from rules.workload import InferenceWorkload

_POOL_SHARE = 0.9  # of a card that a server uses, where nothing else is stated
_MEASURED_WHERE: dict[str, str] = {"cpu": "cpu", "cpu_server": "cpu", "hybrid": "hybrid"}


def llm_speed(
    workload: InferenceWorkload,
    model: ModelSpec,
    device: Accelerator | Cpu,
    count: int,
    host: tuple[Cpu, int] | None = None,
) -> InferenceSpeed:
    """Speed with the workload's own sequences in flight (one where it says nothing).

    Raises `UnsupportedWorkload` where the catalogue lacks a rate or a format is not known.
    """
    request = resolve(workload, model, device, count, host)
    holds = sequences_held(request, device, workload)
    found = figures(request, request.sequences, holds)
    group = _MEASURED_WHERE.get(request.family)
    single, load, fill = spread(group or "decode"), spread(group or "load"), spread(group or "prefill")
    step = decode_step(request, min(request.sequences, holds) / request.replicas, _context(request))
    filling = prefill(request, request.prompt)
    several = request.sequences > 1
    return InferenceSpeed(
        concurrency=request.sequences,
        decode_tok_s=Figure.about(found["decode_tok_s"], load if several else single),
        prefill_tok_s=Figure.about(found["prefill_tok_s"], fill),
        total_tok_s=Figure.about(found["total_tok_s"], load if several else single),
        ttft_s=Figure.about(first_token_seconds(request, min(request.sequences / request.replicas, holds)), fill),
        ttft_burst_s=Figure.about(found["ttft_s"], fill),
        tpot_s=Figure.about(found["tpot_s"], load if several else single),
        requests_s=Figure.about(found["requests_s"], load),
        latency_s=Figure.about(found["latency_s"], load),
        roofline=(_roofline("decode", step), _roofline("prefill", filling)),
        notes=tuple(_notes(request, device)),
    )


def _context(request: Request) -> float:
    return request.depth + request.prompt + request.answer / 2


def figures(request: Request, sequences: float, holds: float | None) -> dict[str, float]:
    """Plain figures: rates a second and seconds. Single-stream keys are of one stream, `total_…` of all."""
    context = _context(request)
    each = max(1.0, sequences / request.replicas)
    load = under_load(request, sequences, holds)
    running = min(each, holds) if holds else each
    filling = prefill(request, request.prompt, running).seconds
    return {
        "decode_tok_s": 1.0 / decode_step(request, running, context).seconds,
        "prefill_tok_s": request.prompt * running / filling * min(request.replicas, max(1.0, sequences)),
        "ttft_s": load.ttft_s,
        "tpot_s": load.tpot_s,
        "total_tok_s": load.total_tok_s,
        "requests_s": load.requests_s,
        "latency_s": load.latency_s if request.answers else filling,
        "prompt_plus_gen_tok_s": (request.prompt + request.answer) * running / load.latency_s,
        "gen_tok_s_incl_prefill": request.answer * running / load.latency_s,
    }


def sequences_held(request: Request, device: Accelerator | Cpu, workload: InferenceWorkload) -> float:
    """Full sequences that one replica's cache holds beside the weights, at most the scheduler's limit."""
    limit = float(workload.max_num_seqs.value) if workload.max_num_seqs else float(MOST_SEQUENCES)
    if isinstance(device, Cpu):
        return limit
    share = workload.gpu_memory_utilization.value if workload.gpu_memory_utilization else _POOL_SHARE
    work = request.work
    room = share * device.memory_bytes * request.tp * request.pp - work.dense_bytes - work.expert_bytes
    each = work.cache_bytes(tokens_held(request, workload))
    return max(1.0, min(limit, room / each if each else limit))


def tokens_held(request: Request, workload: InferenceWorkload) -> float:
    """Tokens of one sequence that an engine must be able to hold: those of a request, or the asked context."""
    length = request.depth + request.prompt + request.answer
    return max(length, workload.context.value) if workload.context is not None else length


def _roofline(name: str, step: Step) -> Roofline:
    parts: dict[Binds, float] = {
        "bandwidth": step.bandwidth,
        "compute": step.compute,
        "overhead": step.overhead,
        "interconnect": step.interconnect,
        "host": step.host,
    }
    binds = max(parts, key=lambda each: parts[each])
    return Roofline(name, binds, {each: seconds for each, seconds in parts.items() if seconds > 0})


def _notes(request: Request, device: Accelerator | Cpu) -> list[Note]:
    notes = []
    if request.family == "other":
        notes.append(Note("speed_engine_not_measured", {}, "T4"))
    if isinstance(device, Accelerator) and device.unverified_fields:
        rates = [f for f in device.unverified_fields if f in ("bandwidth_gb_s", "bf16_dense", "fp16_dense")]
        if rates:
            notes.append(Note("speed_rate_unverified", {"device": device.name}, "T4"))
    return notes
