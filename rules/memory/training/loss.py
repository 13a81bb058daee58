"""The loss phase: logits and what cross entropy makes of them, bytes a (token x vocabulary entry).

Stock Hugging Face loss: 16-bit logits held by the model's output, an fp32 copy's log-softmax, and in the backward pass
two fp32 gradients: 2 + 4 + 4 + 4 = 14 bytes. With an fp32 head the logits are fp32 themselves: 16. Fast kernels work in
place; chunked loss keeps fp32 for one chunk at a time; fused linear cross entropy never makes the logits.
"""

from __future__ import annotations

from rules.memory.training.setup import Setup

_CHUNKS = 8.0


def logit_bytes(s: Setup) -> float:
    """Bytes of one logit as the head returns it: fp32 from an fp32 head outside autocast, else the compute type's."""
    if s.compute_bytes == 4 or (s.special_bytes == 4 and not s.autocast and not s.shard_upcast and not s.master_bytes):
        return 4.0
    return s.compute_bytes


def held_bytes(s: Setup) -> float:
    """Bytes a (token x vocabulary entry) of logits that stay alive until the backward pass is done."""
    return logit_bytes(s) if s.recipe.logits_held and s.loss != "fused" else 0.0


def logits_bytes(s: Setup) -> tuple[float, float]:
    """Bytes a (token x vocabulary entry) alive at the peak of the forward and of the backward pass of the loss."""
    head = logit_bytes(s)
    held = held_bytes(s)
    capped = head if s.shape.softcap else 0.0  # the tanh of a soft cap is kept
    if s.loss == "fused":
        return 0.0, 0.0
    if s.loss == "chunked":
        return head + 8.0 / _CHUNKS, head + 12.0 / _CHUNKS
    if s.loss == "fast":
        return head + 4.0, head + 6.0
    if s.loss == "native":  # torch's cross entropy on the logits as they are
        return held + 2 * head, held + 3 * head
    if s.recipe.family == "megatron":
        return head + 4.0, head + 8.0
    if s.compiled and s.recipe.family == "native":
        return head + 4.0, head + 8.0
    kept = held + capped + s.recipe.logits_extra
    return max(head + 8.0 + capped, kept + 4.0), kept + 12.0


def fused_bytes(s: Setup, tokens: float, head_trained: bool) -> float:
    """Bytes of a fused linear cross entropy: one chunk's logits, the input's gradient, the head's in fp32."""
    h, v = s.shape.hidden, s.shape.vocab
    if not v:
        return 0.0
    chunk = tokens * min(1.0, h / v)
    return chunk * v * 6.0 + tokens * h * s.compute_bytes * 2 + (h * v * 4.0 if head_trained else 0.0)
