"""Counts the operations of convolutional denoisers and of the VAE on shape-only tensors (needs diffusers).

Prints operations (two a multiplication) of one UNet pass at two sizes and of decoding one picture; the tables in
`rules/speed/data/media.toml` hold the two terms, linear in latent pixels and quadratic (self-attention).

    python -m scripts.count_denoiser_operations
"""

from __future__ import annotations

from typing import Any

import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from torch.utils.flop_counter import FlopCounterMode

SD1: dict[str, Any] = {"sample_size": 64, "cross_attention_dim": 768, "attention_head_dim": 8}
SDXL: dict[str, Any] = {
    "sample_size": 128,
    "block_out_channels": (320, 640, 1280),
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
    "transformer_layers_per_block": (1, 2, 10),
    "attention_head_dim": (5, 10, 20),
    "cross_attention_dim": 2048,
    "use_linear_projection": True,
    "addition_embed_type": "text_time",
    "addition_time_embed_dim": 256,
    "projection_class_embeddings_input_dim": 2816,
}
VAE: dict[str, Any] = {
    "block_out_channels": (128, 256, 512, 512),
    "layers_per_block": 2,
    "down_block_types": ("DownEncoderBlock2D",) * 4,
    "up_block_types": ("UpDecoderBlock2D",) * 4,
}


def _unet(config: dict[str, Any], edge: int) -> int:
    with torch.device("meta"):
        net = UNet2DConditionModel(**config)
        text = torch.empty(1, 77, config["cross_attention_dim"])
        added = {"text_embeds": torch.empty(1, 1280), "time_ids": torch.empty(1, 6)}
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            net(torch.empty(1, 4, edge, edge), torch.empty(1), text, added_cond_kwargs=added)
    return int(counter.get_total_flops())


def _vae(edge: int) -> int:
    with torch.device("meta"):
        net = AutoencoderKL(**VAE)
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            net.decode(torch.empty(1, 4, edge, edge))
    return int(counter.get_total_flops())


def _terms(small: tuple[int, int], large: tuple[int, int]) -> tuple[float, float]:
    (a, x), (b, y) = (small[0] ** 2, small[1]), (large[0] ** 2, large[1])
    quadratic = (y / b - x / a) / (b - a)
    return x / a - quadratic * a, quadratic


def main() -> None:
    """Prints operations a latent pixel and a pair of latent pixels."""
    for name, config in (("sd1", SD1), ("sdxl", SDXL)):
        print(name, _terms((64, _unet(config, 64)), (128, _unet(config, 128))))
    print("vae", _terms((64, _vae(64)), (128, _vae(128))))


if __name__ == "__main__":
    main()
