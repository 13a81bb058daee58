"""Memory of a training step of text models: the peak over its phases, part by part."""

from rules.memory.training.law import training_footprint

__all__ = ["training_footprint"]
