"""Activations: what autograd keeps of one block for the backward pass, tensor by tensor, in bytes a token.

Derived from the operations of the framework's modules (norms in fp32, rotary embedding, attention kernel, gated MLP,
adapters and their casts); checked against a traced training step. Nothing here is fitted but `data/training_fit.json`
where it says so.
"""

from __future__ import annotations

from rules.memory.training.setup import Setup
from rules.records import dataclass

_EAGER = frozenset(("eager", "math", "none", "vanilla", "manual", "naive"))
_LSE_BYTES = 4.0  # log-sum-exp of an attention kernel, a head and token


@dataclass(frozen=True, slots=True)
class BlockBytes:
    """Bytes a token of one block. `saved` is kept for backward; `peak` is the most that lives while one block goes
    through backward after its forward was recomputed or kept (saved tensors not yet used, plus gradients in flight);
    `input` is the block's input, all that full checkpointing keeps."""

    saved: float
    peak: float
    input: float
    forward_extra: float


def attention_saved(s: Setup) -> tuple[float, float, float]:
    """Saved bytes a token of attention without norms; extra bytes alive in its backward; extra in its forward."""
    shape, recipe = s.shape, s.recipe
    megatron = recipe.family == "megatron"
    eager = s.attention in _EAGER
    # Kernels run in 16 bits under autocast; a k-bit base without autocast hands them fp32.
    width = s.linear_bytes
    if width == 4 and s.compute_bytes == 2 and (s.autocast or s.attention.startswith("flash")):
        width = 2.0
    masked = _masked_share(s)
    repeats = 1.0 if recipe.repeats_kv or (recipe.family == "hf" and eager) else masked
    repeats *= shape.kv < shape.query
    keys = shape.kv + repeats * (shape.query - shape.kv)
    values = shape.value if shape.latent else shape.kv + repeats * (shape.value - shape.kv)
    saved = (shape.query + keys + values + shape.value) * width + _LSE_BYTES * shape.heads
    if recipe.fused_qkv and not s.compiled:  # values are a view of the whole product, unless they were copied
        saved += (shape.query + shape.kv + repeats * shape.kv) * width
    if shape.latent:
        saved += shape.latent * (width * 2)
    backward = (shape.query + keys + values + shape.value) * width
    forward = 0.0
    if shape.qk_norm:
        upcast = 4.0 if recipe.norm == "upcast" and not s.compiled else width
        saved += (shape.query + shape.kv) * (upcast + (width if s.trained else 0.0))
    if eager:
        scores = shape.heads * s.length
        probabilities = 4.0 + (width if width < 4 else 0.0)
        if megatron:
            probabilities = 5.0
        if shape.softcap:
            probabilities += width
        if shape.dropout:  # softmax in the compute type (fp32 under autocast), its dropped copy and the mask
            probabilities = (4.0 if s.autocast_weights else width) + width + 1
        saved += scores * probabilities - _LSE_BYTES * shape.heads
        backward += scores * (2 * width - width if shape.dropout else 8.0 - (probabilities - 4.0))
        forward = scores * (3 * width if shape.dropout else 8.0 + width)
    else:
        saved += masked * width * s.length / s.batch
        # The kernel accumulates the query's gradient in fp32 and writes grouped heads' gradients for every query head.
        backward += 4.0 * shape.query if width == 2 else 0.0
        if keys < shape.query:
            backward += 2 * shape.query * width
    return saved, backward, forward


def _masked_share(s: Setup) -> float:
    """Share of layers in which torch's attention gets a mask: all by some versions, those with a window beyond it."""
    shape = s.shape
    if s.attention != "sdpa" or not shape.causal or s.recipe.family != "hf":
        return 0.0
    if s.recipe.sdpa_mask:
        return 1.0
    return shape.window_share if shape.window and s.length > shape.window else 0.0


def _reader_bytes(s: Setup, readers: int, adapted: int, width: float, shared: float) -> float:
    """Bytes a token that `readers` linear layers keep of one input of `width` values, `adapted` of which have adapters.

    `shared` is the bytes a value of the input as it is; where a layer casts it, each cast is a tensor of its own.
    """
    if s.trained:
        if s.autocast_weights and shared > s.compute_bytes:
            return readers * width * s.compute_bytes
        return width * shared
    kept = readers * width * s.compute_bytes if s.recipe.keeps_inputs and s.quant_bytes else 0.0
    if adapted:
        cast = s.compute_bytes if s.autocast else s.adapter_bytes
        if s.recipe.adapter_dropout:
            kept += adapted * width * (cast + 1)
        elif _casts_input(s, shared):
            kept += adapted * width * cast
        else:
            kept = max(kept, width * shared)
        kept += adapted * s.adapters.rank * cast
    return kept


def _casts_input(s: Setup, shared: float) -> bool:
    """Whether each adapted layer makes a copy of its input in the adapter's type."""
    return s.recipe.adapter_casts and (s.autocast or s.adapter_bytes != shared)


def _norm(s: Setup) -> float:
    """Bytes a token that one norm keeps, without its output."""
    h = s.shape.hidden
    if s.shape.layer_norm and s.autocast and s.recipe.family == "hf":
        return h * 4.0 + 8  # automatic mixed precision runs layer norm in fp32
    if s.shape.layer_norm or s.recipe.norm == "native" or s.compiled:
        return h * s.stream_bytes + 8
    kept = h * 4.0 + 4
    if s.trained:
        kept += h * (4.0 if s.shape.float_norm else s.stream_bytes)
    return kept


def mlp_saved(s: Setup, width: int, gated: bool, adapted_down: bool) -> tuple[float, float]:
    """Saved bytes a token inside one MLP of `width` (not its input); extra bytes alive in its backward."""
    b = s.linear_bytes
    if s.recipe.fused_mlp and gated:
        product = b * width if s.trained else 0.0
        return 2 * b * width + product, 3 * b * width - product
    if s.compiled or s.recipe.family == "megatron":
        inner = (2 if gated else 1) * b * width
        product = _reader_bytes(s, 1, int(adapted_down), width, b)
        return inner + product, 2 * b * width
    composed = s.shape.composed_gelu and s.recipe.family == "hf" and not gated
    power = 4.0 if s.autocast else b  # powers run in fp32 under autocast
    # Composed in torch operations, GELU keeps x, x^3 + x, tanh and half of x.
    inner = (3 * power + b if composed else (3 if gated else 1) * b) * width
    product = _reader_bytes(s, 1, int(adapted_down), width, b)
    in_flight = (3 * b if gated else 3 * power if composed else 2 * b) * width
    return inner + product, in_flight - (product if s.trained else 0.0)


def block(s: Setup) -> BlockBytes:
    """The heaviest block and what full checkpointing keeps of it, a token, before tensor parallelism."""
    return _block(s, moe=s.shape.moe_layers > 0)


def mean_saved(s: Setup) -> float:
    """Saved bytes a token of the mean block, for runs without checkpointing."""
    shape = s.shape
    dense = _block(s, moe=False).saved if shape.moe_layers < shape.layers else 0.0
    if not shape.moe_layers:
        return dense
    share = shape.moe_layers / shape.layers
    return dense * (1 - share) + _block(s, moe=True).saved * share


def _block(s: Setup, moe: bool) -> BlockBytes:
    shape, a = s.shape, s.adapters
    h = shape.hidden
    output_bytes = s.stream_bytes
    attention, attention_backward, forward = attention_saved(s)
    fused = (s.recipe.fused_qkv or shape.fused_qkv) and not s.trained
    readers = _reader_bytes(
        s, 1 if fused else 3, min(1, a.attention_readers) if fused else a.attention_readers, h, output_bytes
    )
    attention_width = 2.0 if s.autocast else s.linear_bytes
    if not s.trained:
        out = _reader_bytes(s, 1, int(a.output), shape.value, attention_width)
        if a.output and not _casts_input(s, attention_width) and not s.recipe.adapter_dropout:
            out -= shape.value * attention_width  # the kernel's output is kept anyway
        attention += max(0.0, out)
    mixer = attention + readers
    if shape.inner and shape.attention_layers < shape.layers:
        share = shape.attention_layers / shape.layers
        mixer = mixer * share + (1 - share) * (readers + shape.inner * s.linear_bytes * 9)
    if moe:
        mlp, mlp_backward = _experts(s)
    else:
        mlp, mlp_backward = mlp_saved(s, shape.intermediate, shape.gated, a.down)
        mlp += _reader_bytes(s, 2 if shape.gated else 1, a.mlp_readers, h, output_bytes)
    norms = (1 if shape.parallel_block else 4 if shape.four_norms else 2) * _norm(s)
    if shape.dropout:
        norms += 2 * h  # one-byte masks of the two residual dropouts
    if shape.cross:
        mixer += 0.5 * (attention + readers)
    if s.method == "dora":  # the base's and the adapter's outputs are both scaled by the magnitude
        outputs = a.query * shape.query + a.attention_readers * shape.kv + a.output * h
        outputs += a.mlp_readers * shape.intermediate + a.down * h
        mixer += 2 * s.linear_bytes * outputs
    saved = norms + mixer + mlp
    gradient = h * s.stream_bytes
    in_mlp = saved + mlp_backward + gradient
    in_attention = saved - mlp - norms / 2 + attention_backward + gradient
    in_norm = saved - mlp + (16 * h if s.recipe.norm == "upcast" else 4 * h)
    return BlockBytes(
        saved=saved,
        peak=max(in_mlp, in_attention, in_norm, saved + forward - (attention if forward else 0.0)),
        input=h * s.stream_bytes,
        forward_extra=forward,
    )


def _experts(s: Setup) -> tuple[float, float]:
    """A routed MLP: each token goes through `moe_active` experts; with gathered copies and the router's fp32."""
    shape = s.shape
    b = s.linear_bytes
    inner, backward = mlp_saved(s, shape.moe_width, shape.gated, s.adapters.down and s.adapters.experts)
    gathered = shape.hidden * b if s.trained or s.adapters.experts else 0.0
    weighted = shape.hidden * b
    saved = shape.moe_active * (inner + gathered + weighted) + shape.experts * 4.0 * 2
    if shape.shared_width:
        extra, _ = mlp_saved(s, shape.shared_width, shape.gated, s.adapters.down)
        saved += extra
    saved += _reader_bytes(s, 1, s.adapters.mlp_readers, shape.hidden, s.stream_bytes)
    return saved, backward * max(1.0, shape.moe_active / 4)
