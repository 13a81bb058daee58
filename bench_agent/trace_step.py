"""One training step, twice, under torch's fake tensors, with the live bytes of every phase counted.

The loop is a plain one: forward (loss from the model's own default loss), backward, optimizer step, gradients set to
None. The second step has the optimizer's states from the start. The model runs in training mode on fake CPU tensors
with CUDA's behaviour where it differs (`bench_agent.cuda_behaviour`); fake CUDA tensors are no choice, since their
backward aborts a process whose torch has no CUDA.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily

from bench_agent.cuda_behaviour import CudaBehaviour, workspace_bytes
from bench_agent.exact_memory import TraceRefused, TraceRequest
from bench_agent.storage_counter import StorageCounter
from bench_agent.trace_models import DTYPES, Built, build

_STEPS = 2


def traced(request: TraceRequest) -> dict[str, Any]:
    """Runs `request` and returns `peak_bytes`, `phases`, `static_bytes` and the model's catalogue row."""
    built = build(request)
    counter = StorageCounter(workspace_bytes)
    with FakeTensorMode(allow_non_fake_inputs=True), counter:
        with counter.phase("load"):
            _materialise(built.model, DTYPES[request.loaded_dtype])
            batch = _materialised_batch(built)
        static_bytes = counter.live_bytes
        with CudaBehaviour(), _unpacked():
            _steps(built.model, batch, request, counter)
    trainable = sum(p.numel() for p in built.model.parameters() if p.requires_grad)
    return {
        "peak_bytes": counter.peak_bytes,
        "phases": dict(counter.peak_by_phase),
        "static_bytes": static_bytes,
        "trainable_params": trainable,
        "model_row": built.row,
    }


def _steps(model: nn.Module, batch: Any, request: TraceRequest, counter: StorageCounter) -> None:
    optimizer = _optimizer(model, request)
    for _ in range(_STEPS):
        for _ in range(request.grad_accum):
            _forward_and_backward(model, batch, request, counter)
        with counter.phase("optimizer"), _scalars_on_the_host(counter):
            optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def _forward_and_backward(model: nn.Module, batch: Any, request: TraceRequest, counter: StorageCounter) -> None:
    with counter.phase("forward"), _autocast(request):
        output = model(**batch) if isinstance(batch, Mapping) else model(*batch)
        loss = _loss(output)
        held = output if request.keep_output else None
        del output
    with counter.phase("backward"):
        loss.backward()
    del held


@contextlib.contextmanager
def _unpacked() -> Iterator[None]:
    """Tells transformers that the batch is not packed, which it reads off the positions' values where there are any.

    Without values it makes a mask to be safe, and with it copies of keys and values for every query head: a figure
    that no run on a GPU shows.
    """
    try:
        from transformers import masking_utils
    except ImportError:  # an own module without transformers, or a version whose models make no such mask
        yield
        return
    original = getattr(masking_utils, "find_packed_sequence_indices", None)
    if original is None:
        yield
        return
    masking_utils.find_packed_sequence_indices = lambda position_ids: None
    try:
        yield
    finally:
        masking_utils.find_packed_sequence_indices = original


def _autocast(request: TraceRequest) -> contextlib.AbstractContextManager[Any]:
    if not request.mixed_precision:
        return contextlib.nullcontext()
    context: contextlib.AbstractContextManager[Any] = torch.autocast("cpu", dtype=DTYPES[request.compute_dtype])
    return context


@contextlib.contextmanager
def _scalars_on_the_host(counter: StorageCounter) -> Iterator[None]:
    """Torch keeps step counts and scalars of a non-capturable optimizer in host memory."""
    counter.ignore_scalars = True
    try:
        yield
    finally:
        counter.ignore_scalars = False


def _loss(output: Any) -> torch.Tensor:
    loss = output if isinstance(output, torch.Tensor) else getattr(output, "loss", None)
    if loss is None and isinstance(output, Mapping):
        loss = output.get("loss")
    if loss is None and isinstance(output, (tuple, list)) and output:
        loss = output[0]
    if not isinstance(loss, torch.Tensor) or loss.dim() != 0:
        raise TraceRefused("the module must return its loss: a scalar, or an output whose .loss or first item is one")
    return loss


def _optimizer(model: nn.Module, request: TraceRequest) -> torch.optim.Optimizer:
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise TraceRefused("nothing to train: no parameter requires a gradient")
    if request.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, foreach=True)
    if request.optimizer == "adamw_8bit":
        import bitsandbytes as bnb

        with unset_fake_temporarily():  # its two 256-entry code tables are computed from values
            return bnb.optim.AdamW8bit(parameters, lr=1e-3)
    implementation = {"adamw": {"foreach": True}, "adamw_loop": {"foreach": False}, "adamw_fused": {"fused": True}}
    return torch.optim.AdamW(parameters, lr=1e-3, **implementation[request.optimizer])


def _materialise(model: nn.Module, dtype: torch.dtype) -> None:
    """Replaces every meta parameter and buffer by a fake CPU tensor; tied ones stay tied."""
    made: dict[int, Any] = {}
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                key = id(parameter)
                if key not in made:
                    made[key] = _fake_parameter(parameter, dtype)
                module._parameters[name] = made[key]
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = made.setdefault(id(buffer), _fake(buffer))


def _fake(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")


def _fake_parameter(parameter: nn.Parameter, dtype: torch.dtype) -> nn.Parameter:
    if type(parameter).__name__ == "Params4bit":
        return _fake_4bit(parameter, dtype)
    return nn.Parameter(_fake(parameter), requires_grad=parameter.requires_grad)


def _fake_4bit(parameter: Any, dtype: torch.dtype) -> nn.Parameter:
    """A quantised weight as bitsandbytes leaves it: the 16-bit original lives until its 4-bit copy is made."""
    import bitsandbytes as bnb

    original = torch.empty(parameter.shape, dtype=dtype, device="cpu")
    blocksize = parameter.blocksize or 64
    state = bnb.functional.QuantState(
        absmax=torch.empty(-(-original.numel() // blocksize), dtype=torch.float32),
        shape=original.shape,
        code=torch.empty(16, dtype=torch.float32),
        blocksize=blocksize,
        quant_type=parameter.quant_type,
        dtype=dtype,
    )
    packed = nn.Parameter(torch.empty((-(-original.numel() // 2), 1), dtype=torch.uint8), requires_grad=False)
    packed.quant_state = state
    return packed


def _materialised_batch(built: Built) -> Any:
    if isinstance(built.batch, Mapping):
        return {key: _fake_value(value) for key, value in built.batch.items()}
    return tuple(_fake_value(value) for value in built.batch)


def _fake_value(value: Any) -> Any:
    return _fake(value) if isinstance(value, torch.Tensor) else value
