"""What a training step does on an NVIDIA GPU and not on a CPU, so that a trace on fake CPU tensors counts the former.

Four differences change the peak and are corrected here:

* **Dropout.** CUDA keeps a one-byte mask (`native_dropout`); the CPU keeps scaled noise in the input's type. With
  dropout inside attention the CPU leaves its fused kernel for one that keeps batch x heads x length x length scores;
  CUDA's fused kernels drop inside and keep a random seed only.
* **Autocast.** CUDA's cast policy runs layer norm, softmax, losses and powers in float32; the CPU's runs them in bf16.
* **fp16 softmax.** Asked for a float32 result, CUDA's kernel reads fp16 scores and returns fp16 gradients (fp16 only);
  the CPU copies scores and gradients to float32 first.
* **Kernel workspaces.** Fused attention's backward accumulates the query's gradient in float32 and, with grouped
  heads, writes key and value gradients for every query head before summing; softmax's backward first multiplies
  gradient and output into a tensor of their size; bitsandbytes unpacks a 4-bit weight before multiplying. Sizes are
  read from the kernels' sources (PyTorch's FlashAttention-2 and memory-efficient backward and its softmax,
  bitsandbytes' CUDA backend for more than 1,536 rows).

Not corrected: cuDNN attention (chosen by some torch versions on Hopper), cuBLAS workspaces (8 to 32 MiB), radix-sort
and embedding scratch, fragmentation. They belong to the step from allocated to reserved and device memory.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as functional
from torch.overrides import TorchFunctionMode

_aten = torch.ops.aten
_FUSED_ATTENTION_BACKWARD = _aten._scaled_dot_product_flash_attention_for_cpu_backward.default

# Functions that CUDA autocast runs in float32 and CPU autocast does not (PyTorch's list of autocast operations).
_FLOAT32_UNDER_AUTOCAST = frozenset(
    {
        functional.layer_norm,
        functional.group_norm,
        functional.softmax,
        functional.log_softmax,
        functional.softplus,
        functional.cross_entropy,
        functional.nll_loss,
        functional.cosine_similarity,
        functional.l1_loss,
        torch.softmax,
        torch.log_softmax,
        torch.exp,
        torch.log,
        torch.pow,
        torch.rsqrt,
        torch.reciprocal,
        torch.sum,
        torch.cumsum,
        torch.norm,
        torch.Tensor.softmax,
        torch.Tensor.log_softmax,
        torch.Tensor.exp,
        torch.Tensor.log,
        torch.Tensor.pow,
        torch.Tensor.__pow__,
        torch.Tensor.__rpow__,
        torch.Tensor.rsqrt,
        torch.Tensor.reciprocal,
        torch.Tensor.sum,
        torch.Tensor.cumsum,
        torch.Tensor.norm,
    }
)
_HALF = (torch.bfloat16, torch.float16)


class CudaBehaviour(TorchFunctionMode):  # type: ignore[misc]
    """Runs dropout, fused attention and autocast the way that CUDA does, on CPU tensors."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is functional.dropout:
            return _dropout(*args, **kwargs)
        if func is functional.softmax and kwargs.get("dtype") is torch.float32 and args[0].dtype is torch.float16:
            return torch._softmax(args[0], args[1] if len(args) > 1 else kwargs["dim"], True)
        if func is functional.scaled_dot_product_attention:
            if len(args) > 4:
                args = (*args[:4], 0.0, *args[5:])
            else:
                kwargs = {**kwargs, "dropout_p": 0.0}
        elif func in _FLOAT32_UNDER_AUTOCAST and torch.is_autocast_enabled("cpu"):
            with torch.autocast("cpu", enabled=False):
                return func(*(_float32(a) for a in args), **{k: _float32(v) for k, v in kwargs.items()})
        return func(*args, **kwargs)


def _dropout(input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
    if not training or p == 0.0:
        return input
    if inplace:
        return functional.dropout(input, p, training, inplace)
    return torch.native_dropout(input, p, True)[0]


def _float32(value: Any) -> Any:
    return value.float() if isinstance(value, torch.Tensor) and value.dtype in _HALF else value


def workspace_bytes(func: Any, args: tuple[Any, ...], out: Any) -> int:
    """Bytes that the CUDA kernel for this operator allocates inside and frees at its end."""
    if func is _aten._softmax_backward_data.default:
        return int(args[0].numel() * args[0].element_size())
    if func is _FUSED_ATTENTION_BACKWARD:
        return _attention_backward_bytes(args[1], args[2])
    if func.namespace == "bitsandbytes" and func._opname == "gemm_4bit":
        rows, columns = args[2]
        return int(rows * columns * args[0].element_size())
    return 0


def _attention_backward_bytes(query: torch.Tensor, key: torch.Tensor) -> int:
    batch, heads, length, head_dim = query.shape
    rounded_length = -(-length // 128) * 128
    row_sums = 4 * batch * heads * rounded_length
    if query.dtype not in _HALF:  # the memory-efficient kernel accumulates in its float32 output
        return int(row_sums)
    step = 32 if head_dim <= 128 else 64
    query_gradient = 4 * batch * heads * rounded_length * (-(-head_dim // step) * step)
    grouped = 2 * batch * heads * key.shape[2] * head_dim * query.element_size() if key.shape[1] != heads else 0
    return int(row_sums + query_gradient + grouped)
