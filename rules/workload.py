"""What is asked: a `TrainingWorkload` or an `InferenceWorkload`, every field with its origin.

A field is None when nobody said it. `Given` carries a value and where it came from; the laws take `None` as "use the
default" and report what they assumed. Field names follow the published-case schema, so that a case, a parsed question
and a config file all become the same object. Plain frozen dataclasses: cheap to make by the thousand and quick to
import; `rules.wire` checks what comes from outside with pydantic.
"""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

from rules.records import dataclass

T = TypeVar("T")

Origin = Literal["stated", "assumed", "measured"]


@dataclass(frozen=True, slots=True)
class Given(Generic[T]):
    """A value and its origin; `reason` is the message id of the default that supplied an assumed value."""

    value: T
    origin: Origin = "stated"
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """Devices as asked for: catalogue name or the user's words, `count`, and the memory of the variant if stated."""

    name: str
    count: int = 1
    memory_gib: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """A decimal amount as text with its currency; `per` is the unit that it is paid in."""

    amount: str
    currency: str = "USD"
    per: Literal["hour", "month", "year", "once", "million_tokens", "request", "kwh"] = "once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Load to serve, and how long. `users` are people, `concurrency` is sequences in flight.

    `requests_per_s` is the rate that was told, `peak_requests_per_s` the peak where it was told apart;
    `tokens_per_s_per_user` is the reading speed that one stream must reach.
    """

    users: int | None = None
    concurrency: int | None = None
    requests_per_s: float | None = None
    peak_requests_per_s: float | None = None
    requests_per_month: float | None = None
    tokens_per_day: float | None = None
    tokens_per_s_per_user: float | None = None
    latency_ms: float | None = None
    ttft_ms: float | None = None
    hours_per_week: float | None = None
    months: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """Limits on the answer: where it may run, what may be bought, what it may cost, and what decides.

    `providers` are the only clouds allowed; `purchase` is how it is rented; `kwh_price` is money a kWh.
    `devices` is how many accelerators there are, where nobody said of which kind.
    """

    location: str | None = None
    cpu_only: bool = False
    where: Literal["cloud", "on_premises"] | None = None
    budget: Money | None = None
    providers: tuple[str, ...] = ()
    purchase: Literal["on_demand", "spot", "reserved"] | None = None
    kwh_price: Money | None = None
    goal: Literal["cheapest", "fastest"] | None = None
    devices: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRef:
    """A model as the user named it, or a bare size. `name` is resolved by the catalogue; sizes are billions."""

    name: str | None = None
    params_b: float | None = None
    active_params_b: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingWorkload:
    """A training run on all of `hardware`. Lengths are tokens, `micro_batch` is sequences a device and pass."""

    model: ModelRef
    kind: Literal["training"] = "training"
    hardware: tuple[Hardware, ...] = ()
    domain: str | None = None
    method: Given[str] | None = None  # full | lora | qlora | dora | freeze | pretrain
    weights_dtype: Given[str] | None = None
    compute_dtype: Given[str] | None = None
    mixed_precision: Given[bool] | None = None  # fp32 master weights kept
    optimizer: Given[str] | None = None
    optimizer_state_dtype: Given[str] | None = None
    grad_dtype: Given[str] | None = None
    double_quant: Given[bool] | None = None
    lora_rank: Given[int] | None = None
    lora_targets: Given[str | tuple[str, ...]] | None = None
    trainable_params: Given[float] | None = None
    experts_trained: Given[bool] | None = None
    experts_dtype: Given[str] | None = None
    micro_batch: Given[int] | None = None
    grad_accum: Given[int] | None = None
    global_batch: Given[int] | None = None
    seq_len: Given[int] | None = None
    max_seq_len: Given[int] | None = None  # a cap; samples may be shorter
    packed: Given[bool] | None = None
    checkpointing: Given[str] | None = None  # full | selective | none
    attention: Given[str] | None = None  # flash | sdpa | eager
    fused_loss: Given[bool] | None = None
    compile: Given[bool] | None = None
    sharding: Given[str] | None = None  # none | ddp | zero1..3 | fsdp | tpN+ppM…
    dp: Given[int] | None = None
    tp: Given[int] | None = None
    pp: Given[int] | None = None
    cp: Given[int] | None = None
    ep: Given[int] | None = None
    vp: Given[int] | None = None
    sequence_parallel: Given[bool] | None = None
    moe_capacity_factor: Given[float] | None = None
    moe_token_dispatcher: Given[str] | None = None
    offload: Given[str] | None = None  # none | optimizer_cpu | params_cpu | activations_cpu, joined by +
    framework: Given[str] | None = None
    framework_version: Given[str] | None = None
    software_month: Given[str] | None = None  # "2023-07": when the software is of, where its version is not said
    fp8_recipe: Given[str] | None = None
    image_size: Given[int] | None = None
    layers: Given[int] | None = None  # a model cut to so many layers
    dense_layers: Given[int] | None = None
    dataset_samples: Given[float] | None = None
    dataset_tokens: Given[float] | None = None
    epochs: Given[float] | None = None
    traffic: Traffic = Traffic()
    constraints: Constraints = Constraints()


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceWorkload:
    """Serving or running a model. `context` is tokens a sequence (prompt + output), `batch` sequences at once."""

    model: ModelRef
    kind: Literal["inference"] = "inference"
    hardware: tuple[Hardware, ...] = ()
    domain: str | None = None
    engine: Given[str] | None = None
    engine_version: Given[str] | None = None
    software_month: Given[str] | None = None  # "2023-07": when the software is of, where its version is not said
    weights_format: Given[str] | None = None
    kv_dtype: Given[str] | None = None
    context: Given[int] | None = None
    input_len: Given[int] | None = None
    output_len: Given[int] | None = None
    batch: Given[int] | None = None
    concurrency: Given[int] | None = None
    max_num_seqs: Given[int] | None = None
    max_batched_tokens: Given[int] | None = None
    tp: Given[int] | None = None
    pp: Given[int] | None = None
    ep: Given[int] | None = None
    dp_attention: Given[int] | None = None
    gpu_layers: Given[int] | None = None  # llama.cpp -ngl: layers on the GPU
    experts_on_cpu: Given[bool | int | str] | None = None
    experts_on_gpu: Given[int] | None = None
    gpu_memory_utilization: Given[float] | None = None
    mem_fraction_static: Given[float] | None = None
    cuda_graphs: Given[bool | int] | None = None
    flash_attention: Given[bool] | None = None
    attention_impl: Given[str] | None = None
    n_ubatch: Given[int] | None = None
    n_batch: Given[int] | None = None
    mla_mode: Given[int] | None = None
    full_logits: Given[bool] | None = None
    block_size: Given[int] | None = None
    kv_depth: Given[int] | None = None  # tokens already cached when the measured part starts
    cpu_threads: Given[int] | None = None
    host_cpu: Given[str] | None = None  # of the machine around the accelerator; "2x Xeon …" for two sockets
    backend: Given[str] | None = None  # of engines that have several: cuda | vulkan | rocm | metal | cpu
    split_mode: Given[str] | None = None
    kernel: Given[str] | None = None
    offload: Given[str] | None = None  # none | model_cpu | sequential_cpu
    bits_per_weight: Given[float] | None = None
    file_gib: Given[float] | None = None
    draft_model_gib: Given[float] | None = None
    image_size: Given[int] | None = None
    frames: Given[int] | None = None
    steps: Given[int] | None = None
    text_encoder_format: Given[str] | None = None
    vae_slicing: Given[bool] | None = None
    compile: Given[bool] | None = None
    devices_summed: Given[bool] | None = None  # figures are sums over devices
    traffic: Traffic = Traffic()
    constraints: Constraints = Constraints()


Workload = TrainingWorkload | InferenceWorkload
