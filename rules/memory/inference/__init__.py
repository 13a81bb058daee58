"""Memory of serving text models, engine by engine: weights, cache, buffers, pools."""

from rules.memory.inference.law import inference_footprint
from rules.memory.inference.totals import inference_total_bytes

__all__ = ["inference_footprint", "inference_total_bytes"]
