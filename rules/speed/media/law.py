"""Speed of media models on GPUs, Macs and CPUs, and what a CPU serves of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rules.catalog.accelerators import Accelerator
from rules.catalog.cpus import Cpu
from rules.catalog.models import ModelSpec
from rules.formats import UnknownFormat, weight_format
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Note
from rules.speed.machine import Machine, machine_of
from rules.speed.media.seconds import DEFAULT_SPREAD, fitted, mode_of, pass_seconds, total
from rules.speed.media.work import (
    Work,
    denoiser_work,
    speech_encoder_work,
    speech_token_work,
    tables,
    text_work,
    tower_work,
    vision_work,
)
from rules.speed.types import Binds, Figure, InferenceSpeed, Roofline
from rules.workload import Given, InferenceWorkload

_WINDOW_S = 30.0
_THROUGHPUT_BATCH = 64  # samples at once where a service runs at full use
_DIT_SPLIT_SHARE = 0.85  # of each doubling of devices that sequence parallelism keeps


def _value(given: Given[Any] | None) -> Any:
    return None if given is None else given.value


def media_speed(
    workload: InferenceWorkload,
    model: ModelSpec,
    device: Accelerator | Cpu,
    count: int,
    constants: Mapping[str, float] | None = None,
) -> InferenceSpeed:
    """Speed of one request of `batch` samples (latency) and of all `count` devices at full use (rates).

    Raises `UnsupportedWorkload` where the model's shape or a rate of the device is not known.
    """
    if model.domain == "classical":
        return _classical()
    k = constants or fitted()["constants"]
    threads = _value(workload.cpu_threads)
    machine = machine_of(device, count, threads) if isinstance(device, Cpu) else machine_of(device)
    devices = 1 if isinstance(device, Cpu) else count
    bits = _bits(workload, machine)
    mode = mode_of(str(_value(workload.engine) or "").lower(), bool(_value(workload.compile)))
    if model.domain == "diffusion":
        return _diffusion(workload, model, machine, devices, bits, mode, k)
    if model.domain == "audio" and model.decoder_layers:
        return _speech(workload, model, machine, devices, bits, mode, k)
    work = _encoder_work(workload, model)
    batch = _value(workload.batch) or _value(workload.concurrency)
    one = pass_seconds(work, batch or 1, machine, bits, mode, k)
    full = one if batch else pass_seconds(work, _THROUGHPUT_BATCH, machine, bits, mode, k)
    rate = (batch or _THROUGHPUT_BATCH) * devices / total(full)
    return InferenceSpeed(
        concurrency=batch or 1,
        latency_s=_figure(total(one) + (0.0 if machine.memory == "cpu" else k[f"request_{mode}_s"]), machine),
        samples_s=_figure(rate, machine),
        requests_s=_figure(rate, machine),
        roofline=(_roofline("forward", one),),
    )


def cpu_requests_per_s(workload: InferenceWorkload, model: ModelSpec, cpu: Cpu, sockets: int = 1) -> Figure:
    """Requests a second that all cores serve at full use, one sample each; raises as `media_speed` does."""
    found = media_speed(workload, model, cpu, sockets).requests_s
    if found is None:
        raise UnsupportedWorkload("speed_domain_without_law", domain=model.domain)
    return found


def _bits(workload: InferenceWorkload, machine: Machine) -> float:
    sixteen = machine.memory != "cpu" or machine.peak(16) > machine.fp32
    name = str(_value(workload.weights_format) or ("bf16" if sixteen else "fp32"))
    if name.startswith("amp"):  # autocast multiplies in 16 bits whatever the weights are stored in
        return 16.0
    try:
        return weight_format(name).linear_bits
    except UnknownFormat as exc:
        raise UnsupportedWorkload("media_unknown_format", format=name) from exc


def _encoder_work(workload: InferenceWorkload, model: ModelSpec) -> Work:
    image = _value(workload.image_size)
    if model.domain == "vision":
        return vision_work(model, image)
    if model.domain == "dual-encoder":
        return tower_work(model, image)
    if model.domain in ("encoder", "audio"):
        length = _value(workload.input_len) or _value(workload.context)
        default = tables()["lengths"]["encoder_tokens"] if model.domain == "encoder" else 50 * _WINDOW_S
        return text_work(model, length or default)
    raise UnsupportedWorkload("speed_domain_without_law", domain=model.domain)


def _speech(
    workload: InferenceWorkload,
    model: ModelSpec,
    machine: Machine,
    devices: int,
    bits: float,
    mode: str,
    k: Mapping[str, float],
) -> InferenceSpeed:
    tokens = _value(workload.output_len) or tables()["lengths"]["transcript_tokens"]
    batch = _value(workload.batch) or _value(workload.concurrency)
    encode, decode = speech_encoder_work(model), speech_token_work(model, 2.0 if bits <= 16 else 4.0)

    def window(at_once: int) -> tuple[float, float]:
        # Activations stay in 16 bits where only the weights are stored in fewer.
        wide = 8.0 if bits == 8 else max(bits, 16.0)
        first = pass_seconds(encode, at_once, machine, wide, mode, k)
        return total(first), total(pass_seconds(decode, at_once, machine, bits, mode, k))

    encoder, token = window(batch or 1)
    full_encoder, full_token = (encoder, token) if batch else window(_THROUGHPUT_BATCH)
    windows = (batch or _THROUGHPUT_BATCH) * devices / (full_encoder + tokens * full_token)
    latency = encoder + tokens * token
    return InferenceSpeed(
        concurrency=batch or 1,
        latency_s=_figure(latency, machine),
        encoder_s=_figure(encoder, machine),
        tpot_s=_figure(token, machine),
        total_tok_s=_figure(windows * tokens, machine),
        requests_s=_figure(windows, machine),
        realtime_factor=_figure((batch or 1) * _WINDOW_S / latency, machine),
        roofline=(Roofline("encode", "compute", {"encode": encoder, "decode": tokens * token}),),
    )


def _diffusion(
    workload: InferenceWorkload,
    model: ModelSpec,
    machine: Machine,
    devices: int,
    bits: float,
    mode: str,
    k: Mapping[str, float],
) -> InferenceSpeed:
    work, passes, decode = denoiser_work(model, _value(workload.image_size), _value(workload.frames))
    batch = _value(workload.batch) or 1
    lengths = tables()["lengths"]
    steps = _value(workload.steps) or lengths["steps_unet" if work.kind == "unet" else "steps_dit"]
    wide = max(bits, 16.0)  # weights in fewer bits are multiplied in 16
    parts = pass_seconds(work, batch * passes, machine, wide, mode, k)
    split = (devices * _DIT_SPLIT_SHARE ** (devices.bit_length() - 1)) if work.kind == "dit" else 1.0
    step = total(parts) / split
    picture = total(pass_seconds(Work("cnn", decode, 55, 0.0), batch, machine, wide, mode, k))
    seconds = steps * step + picture
    copies = 1 if work.kind == "dit" else devices
    return InferenceSpeed(
        concurrency=batch,
        latency_s=_figure(seconds, machine),
        steps_s=_figure(1 / step, machine),
        samples_s=_figure(batch * copies / seconds, machine),
        requests_s=_figure(batch * copies / seconds, machine),
        roofline=(_roofline("denoise", parts),),
        notes=(Note("speed_diffusion_steps", {"steps": steps}),) if workload.steps is None else (),
    )


def _classical() -> InferenceSpeed:
    low, expected, high = tables()["classical"]["seconds"]
    latency = Figure(low, expected, high)
    rate = Figure(1 / high, 1 / expected, 1 / low)
    return InferenceSpeed(latency_s=latency, samples_s=rate, requests_s=rate, source="formula")


def _figure(value: float, machine: Machine) -> Figure:
    return Figure.about(
        value, float(fitted()["spread"].get("cpu" if machine.memory == "cpu" else "gpu", DEFAULT_SPREAD))
    )


def _roofline(step: str, parts: Mapping[str, float]) -> Roofline:
    largest = max(parts, key=lambda name: parts[name])
    binds: Binds = "compute" if largest == "compute" else "bandwidth" if largest == "bandwidth" else "overhead"
    return Roofline(step, binds, dict(parts))
