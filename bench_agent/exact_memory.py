"""The exact trace: peak memory of a training step, measured without a GPU.

A real training step (transformers, peft, bitsandbytes, torch's optimizers) runs under torch's fake tensors: shapes and
lifetimes are real, nothing is computed or allocated. The live bytes of every phase are counted as CUDA's caching
allocator would hand them out. It answers what torch calls *allocated* memory; context, fragmentation and cuBLAS
workspaces come on top. It is the independent check of the memory law and an answer for models that the law does not
know.

What is traced: `full` fine-tuning (weights in 16 bits throughout, or `mixed_precision`: fp32 weights under autocast),
`lora` (peft's default: fp32 adapters beside frozen weights; `mixed_precision`: under autocast) and `qlora` (NF4
without double quantisation, which fake tensors cannot run; prepared for k-bit training, so norms, embedding and head
in fp32, unless `kbit_prepared` is off). Attention is torch's fused one (`sdpa`) or `eager`. The loop checkpoints
without reentrance, clips no gradients and sets them to None after a step. It holds the model's output, and with it the
logits, until the backward pass is done, as a loop does that names it; `keep_output` off drops it before.

The work is done in a child process with bounds on time and memory, so that an abort inside torch is an error message.
This module needs no torch.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any

METHODS = ("full", "lora", "qlora")
OPTIMIZERS = ("adamw", "adamw_fused", "adamw_loop", "adamw_8bit", "sgd")
ATTENTIONS = ("sdpa", "eager")
DTYPE_NAMES = ("bf16", "fp16", "fp32")
PHASES = ("load", "forward", "backward", "optimizer")
DEFAULT_TIMEOUT_S = 300.0
DEFAULT_MEMORY_GIB = 8.0
_STDERR_KEPT_BYTES = 2000


class TraceError(RuntimeError):
    """A trace that gave no figure; the text is one line."""


class TraceRefused(TraceError):
    """The request cannot be traced as asked; the text says which part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRequest:
    """One step to trace. Exactly one of `config` (a Hugging Face config) and `own_module` (`module:callable`) is set.

    `micro_batch` and `seq_len` are sequences and tokens; an own module brings its own batch. With `grad_accum` over 1
    the gradients of earlier passes are alive in the forward of the later ones. `weights_dtype` (of what is not
    quantised) is fp32 for full fine-tuning under mixed precision and `compute_dtype` otherwise, if not given.
    `lora_targets` is `all_linear` or the layers' last names joined by commas. Raises `TraceRefused` for an unknown
    word.
    """

    name: str = "model"
    config: Mapping[str, Any] | None = None
    own_module: str | None = None
    method: str = "full"
    compute_dtype: str = "bf16"
    weights_dtype: str | None = None
    mixed_precision: bool = False
    kbit_prepared: bool = True
    optimizer: str = "adamw"
    micro_batch: int = 1
    grad_accum: int = 1
    seq_len: int = 512
    checkpointing: bool = False
    attention: str = "sdpa"
    lora_rank: int = 16
    lora_targets: str = "all_linear"
    keep_output: bool = True

    def __post_init__(self) -> None:
        if (self.config is None) == (self.own_module is None):
            raise TraceRefused("model: give a configuration or an own module, one of them")
        for name, known in (
            ("method", METHODS),
            ("optimizer", OPTIMIZERS),
            ("attention", ATTENTIONS),
            ("compute_dtype", DTYPE_NAMES),
            ("weights_dtype", (None, *DTYPE_NAMES)),
        ):
            if getattr(self, name) not in known:
                raise TraceRefused(f"{name}: {getattr(self, name)!r} is not one of {', '.join(map(str, known))}")
        for name in ("micro_batch", "grad_accum", "seq_len", "lora_rank"):
            if getattr(self, name) < 1:
                raise TraceRefused(f"{name}: must be at least 1")

    @property
    def loaded_dtype(self) -> str:
        """The type that weights are loaded in (of those that are not quantised)."""
        if self.weights_dtype:
            return self.weights_dtype
        return "fp32" if self.method == "full" and self.mixed_precision else self.compute_dtype

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TraceRequest:
        """A request from its JSON form; raises `TraceRefused` for an unknown field."""
        unknown = set(data) - {f.name for f in fields(cls)}
        if unknown:
            raise TraceRefused(f"unknown field: {', '.join(sorted(unknown))}")
        return cls(**data)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceResult:
    """Bytes allocated on the device: `peak_bytes`, its maximum by phase, `static_bytes` after loading.

    `model_row` has the model in the catalogue's columns (None for an own module), `versions` what ran.
    """

    peak_bytes: int
    phases: Mapping[str, int]
    static_bytes: int
    trainable_params: int
    model_row: Mapping[str, Any] | None
    versions: Mapping[str, str]

    @property
    def peak_phase(self) -> str:
        """The phase in which the peak occurs."""
        return max(self.phases, key=lambda phase: self.phases[phase])


@cache
def built_in_shapes() -> Mapping[str, Mapping[str, Any]]:
    """Configurations known by name, in Hugging Face's own words."""
    text = files("bench_agent").joinpath("trace_shapes.json").read_text(encoding="utf-8")
    shapes: Mapping[str, Mapping[str, Any]] = json.loads(text)
    return shapes


def shape(name: str, layers: int | None = None) -> dict[str, Any]:
    """A built-in configuration, cut to `layers` blocks if given; raises `TraceRefused` for an unknown name."""
    try:
        config = built_in_shapes()[name]
    except KeyError:
        raise TraceRefused(f"shape: {name!r} is not one of {', '.join(built_in_shapes())}") from None
    return cut(config, layers)


def cut(config: Mapping[str, Any], layers: int | None) -> dict[str, Any]:
    """The configuration with `layers` blocks, or as it is for None; a list of layer types is cut with it."""
    fields = dict(config)
    if layers is not None:
        fields["n_layer" if "n_layer" in fields else "num_hidden_layers"] = layers
        if isinstance(fields.get("layer_types"), list):
            fields["layer_types"] = fields["layer_types"][:layers]
    return fields


def trace(
    request: TraceRequest, timeout_s: float = DEFAULT_TIMEOUT_S, memory_gib: float = DEFAULT_MEMORY_GIB
) -> TraceResult:
    """Traces one step in a child process; raises `TraceError` where it fails, is too slow or too large."""
    (outcome,) = trace_many([request], timeout_s, memory_gib)
    if isinstance(outcome, TraceError):
        raise outcome
    return outcome


def trace_many(
    requests: Iterable[TraceRequest], timeout_s: float = DEFAULT_TIMEOUT_S, memory_gib: float = DEFAULT_MEMORY_GIB
) -> Iterator[TraceResult | TraceError]:
    """Traces in order, one result or error each. One child serves all; after a crash or time-out a new one goes on.

    `timeout_s` bounds each trace (start-up included), `memory_gib` the child's address space beyond its start.
    """
    child: _Child | None = None
    try:
        for request in requests:
            child = child or _Child(memory_gib)
            try:
                answer = child.ask(request, timeout_s)
            except TraceError as exc:
                child.close()
                child = None
                yield exc
                continue
            if "error" in answer:
                yield (TraceRefused if answer.get("refused") else TraceError)(answer["error"])
            else:
                yield TraceResult(**answer)
    finally:
        if child is not None:
            child.close()


class _Child:
    """The tracing process: one JSON request a line in, one JSON answer a line out."""

    def __init__(self, memory_gib: float) -> None:
        environment = dict(os.environ, OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  a file: a pipe that nobody reads would fill up
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench_agent.trace_child", str(memory_gib)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
        )

    def ask(self, request: TraceRequest, timeout_s: float) -> dict[str, Any]:
        process = self._process
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(asdict(request)).encode() + b"\n")
            process.stdin.flush()
            answer: dict[str, Any] = json.loads(self._line(timeout_s))
        except (BrokenPipeError, EOFError):
            raise TraceError(f"the tracing process ended: {self._last_words()}") from None
        return answer

    def _line(self, timeout_s: float) -> bytes:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(timeout_s):
                self._process.kill()
                raise TraceError(f"the trace took longer than {timeout_s:g} s")
        line = self._process.stdout.readline()
        if not line:
            raise EOFError
        return line

    def _last_words(self) -> str:
        code = self._process.wait()
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - _STDERR_KEPT_BYTES))
        text = self._errors.read().decode(errors="replace").strip()
        reason = f"signal {-code}" if code < 0 else f"exit {code}"
        return f"{reason}: {text.splitlines()[-1]}" if text else reason

    def close(self) -> None:
        process = self._process
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, self._errors):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
