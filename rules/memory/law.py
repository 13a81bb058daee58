"""One entrance to the memory laws: picks the law by task and by the model's domain."""

from __future__ import annotations

from rules.catalog.accelerators import Accelerator
from rules.catalog.models import ModelSpec
from rules.memory.footprint import Footprint
from rules.workload import TrainingWorkload, Workload


def footprint(workload: Workload, model: ModelSpec, device: Accelerator | None = None) -> Footprint:
    """Memory of `workload` on the fullest of its devices; None for a device means a typical data-centre card.

    Raises `UnsupportedWorkload` with a message id where no law applies.
    """
    if isinstance(workload, TrainingWorkload):
        return _training(workload, model, device)
    domain = model.domain
    if domain == "llm":
        from rules.memory.inference import inference_footprint

        return inference_footprint(workload, model, device)
    from rules.memory.media import inference_footprint as media_inference

    return media_inference(workload, model, device)


def _training(workload: TrainingWorkload, model: ModelSpec, device: Accelerator | None) -> Footprint:
    if model.domain in ("llm", "encoder", "seq2seq"):
        from rules.memory.training import training_footprint

        return training_footprint(workload, model, device)
    from rules.memory.media import training_footprint as media_training

    return media_training(workload, model, device)
