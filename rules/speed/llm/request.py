"""One question to the laws of speed: a workload with its machine, work and engine resolved."""

from __future__ import annotations

import re
from typing import Any

from rules.catalog.accelerators import Accelerator
from rules.catalog.cpus import Cpu
from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.records import dataclass
from rules.speed.llm.constants import Constants, engine_table, fitted
from rules.speed.llm.work import Work, work_of
from rules.speed.machine import Machine, machine_of
from rules.workload import Given, InferenceWorkload

_DEFAULT_PROMPT, _DEFAULT_ANSWER = 512, 128
_BUILD = re.compile(r"^b(\d{3,6})")
_RELEASE = re.compile(r"^v?(\d+)\.(\d+)")
_LAYER_SPLIT_FAMILIES = ("ggml", "eager", "stalling")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the laws need. `tp` devices split every layer, `pp` hold layers in turn, the rest of `devices` are replicas.

    `prompt` and `answer` are tokens of one request, `depth` tokens already cached when it starts; `answers` is False
    where a prompt was stated and no answer: one pass, as of a model that scores.
    """

    work: Work
    machine: Machine
    constants: Constants
    family: str
    early: bool
    devices: int
    tp: int
    pp: int
    prompt: int
    answer: int
    depth: int
    sequences: int
    chunk: int
    flash: bool
    answers: bool
    bf16: bool
    backend: str = ""
    host: Machine | None = None
    host_share: float = 0.0
    experts_on_host: float = 0.0

    @property
    def replicas(self) -> int:
        """Copies of the model that work side by side."""
        return max(1, self.devices // (self.tp * self.pp))

    def k(self, name: str, kind: str = "") -> float:
        """A constant of this engine family."""
        return self.constants.of(name, self.family, kind)


def resolve(
    workload: InferenceWorkload,
    model: ModelSpec,
    device: Accelerator | Cpu,
    count: int,
    host: tuple[Cpu, int] | None = None,
    constants: Constants | None = None,
) -> Request:
    """The request of a workload on `count` devices; raises `UnsupportedWorkload` where a rate is not known.

    `host` is the CPU around the accelerators and its sockets; what does not lie on them is read and multiplied there.
    """
    if not model.layers:
        raise UnsupportedWorkload("speed_architecture_unknown", model=model.hf_id)
    engine = _value(workload.engine, "").lower()
    family = engine_table()["family"].get(engine, "other")
    if isinstance(device, Cpu) or _value(workload.backend, "") == "cpu":
        family = "cpu_server" if family == "server" or engine == "ipex" else "cpu"
    early = _early(workload, engine)
    fmt = _value(workload.weights_format, "bf16")
    kv = _value(workload.kv_dtype, None) or _cache_of_engine(engine, fmt)
    work = work_of(model, fmt, kv, _value(workload.file_gib, None))
    machine = machine_of(device, count if isinstance(device, Cpu) else 1, _value(workload.cpu_threads, None))
    if isinstance(device, Cpu):
        count = 1
    tp, pp = _split(workload, family, model, work, device, count)
    context = _value(workload.context, None)
    prompt = _value(workload.input_len, None)
    answer = _value(workload.output_len, None)
    prompt_unstated = prompt is None
    if prompt is None:
        prompt = min(_DEFAULT_PROMPT, context) if context else _DEFAULT_PROMPT
    flash = workload.flash_attention.value if workload.flash_attention else not (early and family == "ggml")
    there, experts_there = _on_host(workload, model, family)
    if (there or experts_there) and host is None and not isinstance(device, Cpu):
        raise UnsupportedWorkload("speed_host_unknown", device=device.name)
    return Request(
        work=work,
        machine=machine,
        constants=constants or fitted(),
        family=family,
        early=early,
        devices=count,
        tp=tp,
        pp=pp,
        prompt=max(1, prompt),
        answer=max(1, answer if answer is not None else _DEFAULT_ANSWER),
        depth=_value(workload.kv_depth, 0) or 0,
        sequences=max(1, _value(workload.concurrency, None) or _value(workload.batch, None) or 1),
        chunk=max(1, _value(workload.n_ubatch, None) or 512),
        flash=flash,
        answers=answer is not None or prompt_unstated,
        bf16=fmt.lower().endswith("bf16"),
        backend=str(_value(workload.backend, "")).lower(),
        host=machine_of(*host) if host is not None and (there or experts_there) else None,
        host_share=there,
        experts_on_host=experts_there,
    )


def _cache_of_engine(engine: str, fmt: str) -> str | None:
    """TensorRT-LLM's quantised recipes keep the cache in 8 bits (its published benchmarks)."""
    return "fp8" if engine.startswith("tensorrt") and fmt.startswith(("fp8", "nvfp4")) else None


def _on_host(workload: InferenceWorkload, model: ModelSpec, family: str) -> tuple[float, float]:
    """Share of all layers, and beyond them of the experts, that lies in the host's memory."""
    layers = model.layers or 1
    on_device = _value(workload.gpu_layers, None)
    share = max(0.0, 1.0 - on_device / layers) if isinstance(on_device, int) and 0 <= on_device < layers else 0.0
    experts = 0.0
    if model.moe is not None:
        kept = _value(workload.experts_on_gpu, None)
        stated = _value(workload.experts_on_cpu, None)
        if kept is not None:
            experts = 1.0 - kept / model.moe.experts
        elif stated is True or isinstance(stated, str) or (stated is None and family == "hybrid"):
            experts = 1.0
        elif isinstance(stated, int) and stated:
            experts = min(1.0, stated / model.moe.experts)
    return share, experts * (1.0 - share)


def _value(given: Given[Any] | None, default: Any) -> Any:
    return given.value if given is not None else default


def _early(workload: InferenceWorkload, engine: str) -> bool:
    limit = engine_table()["age"].get(engine)
    if limit is None:
        return False
    version = str(_value(workload.engine_version, ""))
    if (build := _BUILD.match(version)) and "build" in limit:
        return int(build.group(1)) < int(limit["build"])
    if (release := _RELEASE.match(version)) and "version" in limit:
        return [int(release.group(1)), int(release.group(2))] < list(limit["version"])
    month = str(_value(workload.software_month, ""))
    return bool(month) and month < str(limit["month"])


def _split(
    workload: InferenceWorkload, family: str, model: ModelSpec, work: Work, device: Accelerator | Cpu, count: int
) -> tuple[int, int]:
    """Degrees of tensor and pipeline parallelism: stated, else layers for file engines, else the fewest that hold."""
    if workload.tp is not None or workload.pp is not None:
        tp = max(1, min(count, _value(workload.tp, 1)))
        pp = max(1, min(count // tp, _value(workload.pp, 1)))
        return tp, pp
    if count == 1:
        return 1, 1
    if family in _LAYER_SPLIT_FAMILIES:
        return 1, count
    if not isinstance(device, Accelerator) or family == "native":
        return count, 1
    needed = (work.dense_bytes + work.expert_bytes) / (_WEIGHTS_SHARE * device.memory_bytes)
    tp = 1
    while tp < count and (tp < needed or count % tp):
        tp *= 2
    return min(tp, count), 1


_WEIGHTS_SHARE = 0.7  # weights beyond this share of a card leave too little cache: engines then split the model
