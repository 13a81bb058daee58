"""Image-text pairs (CLIP, SigLIP): two towers, one after the other in inference, both kept in training."""

from __future__ import annotations

from rules.catalog.models import ModelSpec, VisionTower
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Footprint, Part
from rules.memory.media.asked import Asked
from rules.memory.media.facts import fitted, tables
from rules.memory.media.phases import Holder, Phase, Spread, assemble
from rules.memory.media.transformer import forward_bytes, training_bytes
from rules.memory.media.weights import weights_part

_SPREAD = Spread(0.2, 0.35)


def image_tower(model: ModelSpec) -> VisionTower:
    """The image tower of a model whose text tower is described as well; raises `UnsupportedWorkload`."""
    tower = model.vision
    if not model.hidden or not model.layers or tower is None or not (tower.hidden and tower.layers and tower.patch):
        raise UnsupportedWorkload("media_model_shape_missing", model=model.display_name, field="vision")
    return tower


def _image_tokens(tower: VisionTower, image: int) -> int:
    return max(1, image // tower.patch) ** 2 + 1


def text_length(model: ModelSpec) -> int:
    """Text positions: CLIP and SigLIP pad every caption to the model's length."""
    return min(model.max_position or int(tables()["lengths"]["dual_encoder_text"]), 512)


def dual_encoder_footprint(asked: Asked, model: ModelSpec) -> Footprint:
    """Memory of embedding `batch` images and `batch` captions."""
    tower = image_tower(model)
    image = asked.image
    if image is None:
        image = tower.image or int(tables()["lengths"]["image"])
        asked.assume("image_size", image, "media_default_image")
    tokens, length = _image_tokens(tower, image), asked.context or text_length(model)
    seen = asked.batch * (
        3 * image * image * asked.value_bytes
        + forward_bytes(
            tokens,
            tokens,
            tower.hidden,
            tower.intermediate or 4 * tower.hidden,
            tower.heads or 1,
            asked.value_bytes,
            asked.eager,
        )
    )
    hidden = model.hidden or 0
    read = asked.batch * forward_bytes(
        length, length, hidden, model.intermediate or 4 * hidden, model.heads or 1, asked.value_bytes, asked.eager
    )
    share = float(fitted()["reserved_share_transformer"])
    phases = [
        Phase(
            "images",
            (Part("activations", seen, "media_activations_images", {"batch": asked.batch, "image": image}),),
            share * seen,
        ),
        Phase(
            "texts",
            (Part("activations", read, "media_activations_tokens", {"batch": asked.batch, "length": length}),),
            share * read,
        ),
    ]
    weights = weights_part(model, asked)
    holder = Holder(
        cpu=asked.cpu, runtime_bytes=asked.engine.runtime_bytes(asked.cpu), spread=_SPREAD, notes=asked.notes
    )
    return assemble([weights], phases, holder, {"weights": weights.bytes})


def pair_training_bytes(
    model: ModelSpec, image: int, autocast: bool, value_bytes: float, eager: bool, checkpointing: bool
) -> float:
    """Bytes that one image-text pair keeps for the backward pass, in both towers."""
    tower = image_tower(model)
    tokens, length = _image_tokens(tower, image), text_length(model)
    seen = training_bytes(
        tokens, tokens, tower.hidden, tower.layers, tower.heads or 1, autocast, value_bytes, eager, checkpointing
    )
    read = training_bytes(
        length,
        length,
        model.hidden or 0,
        model.layers or 1,
        model.heads or 1,
        autocast,
        value_bytes,
        eager,
        checkpointing,
    )
    return 3 * image * image * 4.0 + seen + read
