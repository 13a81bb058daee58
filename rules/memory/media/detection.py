"""Object detection (YOLO): the image laws at detection resolutions; boxes matter in training only, and are said so."""

from __future__ import annotations

from rules.catalog.models import ModelSpec
from rules.memory.footprint import Footprint, Note
from rules.memory.media.asked import Asked
from rules.memory.media.facts import tables
from rules.memory.media.phases import Spread
from rules.memory.media.vision import images_footprint

_SPREAD = Spread(0.25, 0.5)


def is_detector(model: ModelSpec) -> bool:
    """True for detectors of the catalogue."""
    name = f"{model.hf_id} {model.family}".lower()
    return any(word in name for word in ("yolo", "detr"))


def detection_footprint(asked: Asked, model: ModelSpec) -> Footprint:
    """Memory of detecting objects in `batch` square images of `image_size` pixels (640 where not said)."""
    image = asked.image
    if image is None:
        image = int(tables()["lengths"]["detection_image"])
        asked.assume("image_size", image, "media_default_image")
    return images_footprint(asked, model, image, _SPREAD)


def boxes_note() -> Note:
    """Training memory grows with the boxes an image holds, which no workload states."""
    return Note("media_boxes_grow_training")
