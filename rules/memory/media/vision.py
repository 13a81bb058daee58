"""Image models: vision transformers by their tokens, convolutional and windowed networks by pixels and parameters."""

from __future__ import annotations

from rules.catalog.models import ModelSpec
from rules.memory.footprint import Footprint, Part
from rules.memory.media.asked import Asked
from rules.memory.media.facts import anchored, fitted, matching, tables
from rules.memory.media.phases import Holder, Phase, Spread, assemble
from rules.memory.media.transformer import forward_bytes, training_bytes
from rules.memory.media.weights import weights_part
from rules.units import MIB

_SPREAD = Spread(0.25, 0.4)
_ANCHOR_INFERENCE, _ANCHOR_TRAINING = 1, 2


def patch_tokens(model: ModelSpec, image: int) -> int:
    """Patch tokens of a square image and the class token."""
    patch = (model.vision.patch if model.vision else None) or 16
    return max(1, image // patch) ** 2 + 1


def is_plain_vit(model: ModelSpec) -> bool:
    """True where the stack is a plain vision transformer with known shapes."""
    return bool(model.hidden and model.layers and model.arch_type == "vision-transformer" and model.vision)


def native_image(model: ModelSpec) -> int:
    """Edge of the image that the model was made for, pixels."""
    if model.vision and model.vision.image:
        return model.vision.image
    return int(matching("vision", f"{model.hf_id} {model.family}")[1]["image"])


def image_bytes(model: ModelSpec, image: int, value_bytes: float, eager: bool) -> float:
    """Bytes alive while one image runs forward."""
    picture = 3 * image * image * value_bytes
    if is_plain_vit(model):
        length = patch_tokens(model, image)
        hidden = model.hidden or 0
        inner = model.intermediate or 4 * hidden
        return picture + forward_bytes(length, length, hidden, inner, model.heads or 1, value_bytes, eager)
    return picture + _by_pixels(model, image, _ANCHOR_INFERENCE) * value_bytes / 4


def image_training_bytes(
    model: ModelSpec, image: int, autocast: bool, value_bytes: float, checkpointing: bool
) -> float:
    """Bytes that one image keeps for the backward pass."""
    picture = 3 * image * image * 4.0
    if is_plain_vit(model):
        length = patch_tokens(model, image)
        return picture + training_bytes(
            length,
            length,
            model.hidden or 0,
            model.layers or 1,
            model.heads or 1,
            autocast,
            value_bytes,
            False,
            checkpointing,
        )
    kept = _by_pixels(model, image, _ANCHOR_TRAINING)
    if autocast:
        family = matching("vision", f"{model.hf_id} {model.family}")[1]
        kept *= float(family.get("autocast_share", tables()["vision_training"]["autocast_share"]))
    else:
        kept *= value_bytes / 4
    return picture + kept * (float(tables()["vision_training"]["checkpoint_share"]) if checkpointing else 1.0)


def _by_pixels(model: ModelSpec, image: int, column: int) -> float:
    family = matching("vision", f"{model.hf_id} {model.family}")[1]
    mib = anchored(family["anchors"], model.params_total / 1e6, column)
    return mib * MIB * (image / float(family["image"])) ** 2


def vision_footprint(asked: Asked, model: ModelSpec) -> Footprint:
    """Memory of classifying or embedding `batch` square images of `image_size` pixels."""
    image = asked.image
    if image is None:
        image = native_image(model)
        asked.assume("image_size", image, "media_default_image")
    return images_footprint(asked, model, image, _SPREAD)


def images_footprint(asked: Asked, model: ModelSpec, image: int, spread: Spread) -> Footprint:
    """Weights, activations of `batch` images and, on a GPU, the convolution library's workspace."""
    alive = asked.batch * image_bytes(model, image, asked.value_bytes, asked.eager)
    weights = weights_part(model, asked)
    parts = [Part("activations", alive, "media_activations_images", {"batch": asked.batch, "image": image})]
    if model.arch_type == "cnn" and not asked.cpu:
        workspace = float(tables()["vision_training"]["cudnn_workspace_mib"]) * MIB
        parts.append(Part("workspace", min(workspace, alive), "media_conv_workspace"))
    holder = Holder(
        cpu=asked.cpu, runtime_bytes=asked.engine.runtime_bytes(asked.cpu), spread=spread, notes=asked.notes
    )
    cached = float(fitted()["reserved_share_transformer"]) * alive
    return assemble([weights], [Phase("forward", tuple(parts), cached)], holder, {"weights": weights.bytes})
