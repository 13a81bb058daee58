"""Architectures of another size: the same model cut to fewer layers, or a neighbour scaled to a parameter count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rules.catalog.models import ModelSpec, Moe


def layer_params(model: ModelSpec) -> tuple[float, float, float]:
    """Parameters outside the blocks, of one block (of a MoE block where there are experts), of one dense block."""
    hidden, layers = model.hidden or 0, max(1, (model.layers or 1) + (model.decoder_layers or 0))
    table = model.params_embedding or (model.vocab or 0) * hidden
    outside = table * (2 if model.tie_embeddings is False else 1) + model.vision_params
    blocks = max(0.0, model.params_total - outside)
    if not model.moe or not 0 < model.moe.moe_layers < layers:
        return outside, blocks / layers, blocks / layers
    moe = model.moe
    matrices = 3 if model.gated_mlp else 2
    experts = matrices * hidden * (moe.experts * moe.expert_intermediate + moe.shared_intermediate)
    dense = matrices * hidden * (model.intermediate or 0)
    attention = (blocks - moe.moe_layers * experts - (layers - moe.moe_layers) * dense) / layers
    return outside, attention + experts, attention + dense


def with_layers(model: ModelSpec, layers: int, dense_layers: int | None = None) -> ModelSpec:
    """The same model with another number of blocks, full width and vocabulary; `dense_layers` of them without experts.

    Raises ValueError where `layers` is not positive.
    """
    if layers < 1:
        raise ValueError(f"layers={layers}")
    outside, block, dense_block = layer_params(model)
    old = max(1, model.layers or 1)
    moe, dense = model.moe, 0
    active = model.params_active - outside
    if moe and moe.moe_layers:
        dense = min(layers, old - moe.moe_layers if dense_layers is None else dense_layers)
        moe = replace(moe, moe_layers=layers - dense)
        spare = block - _active_block(model, moe, block)
        total = outside + dense * dense_block + (layers - dense) * block
        active = total - (layers - dense) * spare
    else:
        total = outside + layers * block
        active = total if model.params_active == model.params_total else outside + active * layers / old
    pattern = model.layer_pattern
    pattern = (pattern * (layers // len(pattern) + 1))[:layers] if pattern else None
    return replace(
        model,
        layers=layers,
        moe=moe,
        params_total=round(total),
        params_active=min(round(total), round(active)),
        layer_pattern=pattern,
        layer_kinds=_scaled_kinds(model.layer_kinds, layers),
    )


def _active_block(model: ModelSpec, moe: Moe, block: float) -> float:
    matrices = 3 if model.gated_mlp else 2
    return block - matrices * (model.hidden or 0) * (moe.experts - moe.active) * moe.expert_intermediate


def _scaled_kinds(kinds: Mapping[str, int], layers: int) -> dict[str, int]:
    """Shares the layers out among the kinds in the old proportion, so that the counts add up to `layers`."""
    total = sum(kinds.values())
    if not total:
        return dict(kinds)
    shares = {kind: n * layers / total for kind, n in kinds.items()}
    counts = {kind: int(share) for kind, share in shares.items()}
    for kind in sorted(shares, key=lambda k: counts[k] - shares[k])[: layers - sum(counts.values())]:
        counts[kind] += 1
    return counts


def layers_for(model: ModelSpec, params: float) -> tuple[int, int | None]:
    """Blocks, and dense blocks among them, whose parameters come nearest to `params` at the model's full width.

    A model whose first blocks have no experts may keep fewer of them when it is cut.
    """
    outside, block, dense_block = layer_params(model)
    if not block:
        return max(1, model.layers or 1), None
    if not model.moe or not model.moe.moe_layers:
        return max(1, round((params - outside) / block)), None
    dense_now = max(0, (model.layers or 0) - model.moe.moe_layers)
    choices = []
    for dense in range(dense_now, -1, -1):
        experts = max(0, round((params - outside - dense * dense_block) / block))
        miss = abs(outside + dense * dense_block + experts * block - params)
        choices.append((miss, max(1, dense + experts), dense))
    _, layers, dense = min(choices, key=lambda choice: choice[0])
    return layers, dense


def with_other_head(model: ModelSpec) -> ModelSpec | None:
    """The same model with its output head untied from the embedding, or tied to it; None where that is not known."""
    table = model.params_embedding
    if not table or model.tie_embeddings is None:
        return None
    sign = 1 if model.tie_embeddings else -1
    return replace(
        model,
        params_total=model.params_total + sign * table,
        params_active=model.params_active + sign * table,
        tie_embeddings=not model.tie_embeddings,
    )


def scaled_to(model: ModelSpec, params: float, active: float | None = None) -> ModelSpec:
    """A neighbour of about `params` parameters: depth and width grow together (cube root), head size stays.

    For a diffusion pipeline `params` is the denoiser, and the encoders stay. Else `params_total` is set to `params`
    itself; the split of a neighbour is an estimate and the caller says so.
    """
    if model.components:
        parts = replace(model.components, denoiser=round(params))
        total = parts.denoiser + sum(parts.text_encoders.values()) + (parts.vae or 0)
        return replace(model, components=parts, params_total=total, params_active=total, aliases=())
    scale = (params / model.params_total) ** (1 / 3)
    if model.moe or not model.hidden or not model.heads or not model.layers:
        spec = with_layers(model, *layers_for(model, params)) if model.layers else model
    else:
        head = model.head_dim or model.hidden // model.heads
        group = max(1, model.heads // (model.kv_heads or model.heads))
        kv_heads = max(1, round(model.heads * scale / group))
        heads = kv_heads * group
        hidden = max(head, round(model.hidden * scale / head) * head)
        layers = max(1, round(model.layers * scale))
        spec = replace(
            model,
            hidden=hidden,
            heads=heads,
            kv_heads=kv_heads if model.kv_heads else None,
            layers=layers,
            decoder_layers=max(1, round(model.decoder_layers * scale)) if model.decoder_layers else None,
            intermediate=max(64, round((model.intermediate or 4 * model.hidden) * scale / 64) * 64),
            params_embedding=(model.vocab or 0) * hidden or None,
            layer_kinds=_scaled_kinds(model.layer_kinds, layers),
            layer_pattern=(model.layer_pattern * (layers // len(model.layer_pattern) + 1))[:layers]
            if model.layer_pattern
            else None,
        )
    total = round(params)
    share = model.params_active / model.params_total
    return replace(spec, params_total=total, params_active=min(total, round(active or share * total)), aliases=())
