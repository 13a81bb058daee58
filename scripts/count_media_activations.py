"""Counts the activation facts of media.toml: what is alive while a model runs on shape-only tensors.

    pip install diffusers timm torchvision
    python scripts/count_media_activations.py [unet] [dit] [vae] [vision]

Runs the public model code on the meta device, where tensors have shapes and no data, and follows every storage from its
birth to its death: peak while running, and what is held when the backward pass begins. Fused attention is stood in for
by an operation that saves what the fused kernels save. Convolution workspaces and autocast are not seen here.
"""

from __future__ import annotations

import argparse
import logging
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

MIB = 1024**2
BF16 = torch.bfloat16


class Alive(TorchDispatchMode):
    """Bytes of storages alive, parameters left out."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.held = [t.untyped_storage() for t in (*module.parameters(), *module.buffers())]
        self.known = {storage._cdata for storage in self.held}
        self.now = self.peak = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for leaf in torch.utils._pytree.tree_leaves(out):
            if isinstance(leaf, torch.Tensor):
                self._add(leaf.untyped_storage())
        return out

    def _add(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self.known or not size:
            return
        self.known.add(key)
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._drop, key, size)

    def _drop(self, key: int, size: int) -> None:
        self.known.discard(key)
        self.now -= size


class FusedAttention(torch.autograd.Function):
    """Saves queries, keys, values, output and one fp32 value a row, as fused kernels do."""

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        out = torch.empty(*q.shape[:-1], v.shape[-1], dtype=q.dtype, device=q.device)
        rows = torch.empty(q.shape[:-1], dtype=torch.float32, device=q.device)
        ctx.save_for_backward(q, k, v, out, rows)
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(torch.empty_like(t) for t in ctx.saved_tensors[:3])


@contextmanager
def fused_attention() -> Iterator[None]:
    """Replaces scaled_dot_product_attention while counting."""
    original = torch.nn.functional.scaled_dot_product_attention
    torch.nn.functional.scaled_dot_product_attention = (  # type: ignore[assignment]
        lambda query, key, value, *_, **__: FusedAttention.apply(query, key, value)
    )
    try:
        yield
    finally:
        torch.nn.functional.scaled_dot_product_attention = original


def count(name: str, module: torch.nn.Module, call: Callable[[], Any], samples: float, unit: float) -> None:
    """Prints peak in inference and bytes kept by a training forward, a sample and in units of `unit` bytes."""
    figures = []
    for training in (False, True):
        module.train(training)
        alive = Alive(module)
        with nullcontext() if training else torch.no_grad(), fused_attention(), alive:
            out = call()
            held = alive.now
        figures.append((held if training else alive.peak) / samples)
        del out
    run, kept = figures
    print(
        f"{name:44s} runs {run / MIB:9.2f} MiB = {run / unit:9.1f} units, "
        f"keeps {kept / MIB:9.2f} MiB = {kept / unit:9.1f} units"
    )


def empty(*shape: int, dtype: torch.dtype = BF16) -> torch.Tensor:
    """A shape-only tensor."""
    return torch.empty(*shape, dtype=dtype, device="meta")


def count_unet() -> None:
    """SDXL and SD 1.5, values a latent pixel (unit: one bf16 value of one latent pixel)."""
    from diffusers import UNet2DConditionModel

    with torch.device("meta"):
        small = UNet2DConditionModel(
            sample_size=64, block_out_channels=(320, 640, 1280, 1280), cross_attention_dim=768, attention_head_dim=8
        ).to(BF16)
        large = UNet2DConditionModel(
            sample_size=128,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
            block_out_channels=(320, 640, 1280),
            cross_attention_dim=2048,
            transformer_layers_per_block=(1, 2, 10),
            attention_head_dim=(5, 10, 20),
            use_linear_projection=True,
            addition_embed_type="text_time",
            addition_time_embed_dim=256,
            projection_class_embeddings_input_dim=2816,
        ).to(BF16)
    step = torch.empty(1, dtype=torch.long, device="meta")
    added = {"text_embeds": empty(1, 1280), "time_ids": empty(1, 6)}
    for recompute in (False, True):
        for unet in (small, large):
            if recompute:
                unet.enable_gradient_checkpointing()
        mark = " recomputed" if recompute else ""
        count(
            f"SD 1.5 at 512{mark}", small, lambda: small(empty(1, 4, 64, 64), step, empty(1, 77, 768)), 1, 64 * 64 * 2
        )
        count(
            f"SDXL at 1024{mark}",
            large,
            lambda: large(empty(1, 4, 128, 128), step, empty(1, 77, 2048), added_cond_kwargs=added),
            1,
            128 * 128 * 2,
        )


def count_dit() -> None:
    """Flux blocks (unit: tokens x hidden in bf16); four blocks of each kind, and Wan for cross attention."""
    from diffusers import FluxTransformer2DModel, WanTransformer3DModel

    tokens, text = 1024, 512
    for double, single in ((4, 0), (0, 4)):
        with torch.device("meta"):
            flux = FluxTransformer2DModel(guidance_embeds=True, num_layers=double, num_single_layers=single).to(BF16)
        inputs = {
            "hidden_states": empty(1, tokens, 64),
            "encoder_hidden_states": empty(1, text, 4096),
            "pooled_projections": empty(1, 768),
            "timestep": empty(1),
            "img_ids": empty(tokens, 3),
            "txt_ids": empty(text, 3),
            "guidance": empty(1, dtype=torch.float32),
        }
        count(
            f"Flux, {double} double and {single} single blocks",
            flux,
            lambda f=flux, i=inputs: f(**i),
            1,
            (tokens + text) * 3072 * 2,
        )  # type: ignore[misc]
    with torch.device("meta"):
        wan = WanTransformer3DModel(num_layers=4, num_attention_heads=40, attention_head_dim=128, ffn_dim=13824).to(
            BF16
        )
    step = torch.empty(1, dtype=torch.long, device="meta")
    seen = 5 * 30 * 52
    count(
        "Wan 14B, 4 blocks", wan, lambda: wan(empty(1, 16, 5, 60, 104), step, empty(1, 512, 4096)), 1, seen * 5120 * 2
    )


def count_vae() -> None:
    """The image VAE's decoder (unit: one value a pixel), without workspaces."""
    from diffusers import AutoencoderKL

    with torch.device("meta"):
        vae = AutoencoderKL(
            down_block_types=("DownEncoderBlock2D",) * 4,
            up_block_types=("UpDecoderBlock2D",) * 4,
            block_out_channels=(128, 256, 512, 512),
            layers_per_block=2,
        ).to(BF16)
    count("VAE decoder at 512", vae, lambda: vae.decode(empty(1, 4, 64, 64)), 1, 512 * 512 * 2)
    count("VAE encoder at 512", vae, lambda: vae.encode(empty(1, 3, 512, 512)), 1, 512 * 512 * 2)


def count_vision() -> None:
    """Image classifiers in fp32 at 224 pixels, MiB an image."""
    import timm

    batch = 16
    for name in ("resnet18", "resnet50", "convnext_base", "swin_base_patch4_window7_224", "efficientnet_b0"):
        with torch.device("meta"):
            net = timm.create_model(name)
        images = empty(batch, 3, 224, 224, dtype=torch.float32)
        count(name, net, lambda n=net, x=images: n(x), batch, MIB)  # type: ignore[misc]
    with torch.device("meta"):
        vit = timm.create_model("vit_base_patch16_224")
    images = empty(batch, 3, 224, 224, dtype=torch.float32)
    count("vit_base_patch16_224 (units of a layer)", vit, lambda: vit(images), batch, 197 * 768 * 4 * 12)


def main() -> None:
    """Counts the groups named, or all."""
    groups = {"unet": count_unet, "dit": count_dit, "vae": count_vae, "vision": count_vision}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("group", nargs="*", choices=[*groups, []], help="what to count (default: everything)")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    for name in options.group or groups:
        groups[name]()


if __name__ == "__main__":
    main()
