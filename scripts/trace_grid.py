"""Traces the whole grid of training configurations and writes tests/accuracy/traces.jsonl, one result a line.

    python scripts/trace_grid.py                 # all of it, about ten minutes on one core
    python scripts/trace_grid.py --out other.jsonl --match llama-3-8b

The grid is drawn with a fixed seed: every shape with every method that it supports, each with a few combinations of
batch, length, checkpointing, attention and optimizer. A line has the request, the model in the catalogue's columns
(counted on the modules, so that the law is asked about the same model), the same run in the words of
`TrainingWorkload`, the traced bytes and the versions.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench_agent.exact_memory import TraceError, TraceRequest, shape, trace_many

OUT = Path(__file__).parents[1] / "tests" / "accuracy" / "traces.jsonl"
SEED = 20261130
DRAWS = 2
FRAMEWORK = "transformers (plain loop)"
MAX_TOKENS = 16384
BATCHES = (1, 2, 4, 8)
LENGTHS = (256, 512, 1024, 2048, 4096)
EAGER_LENGTHS = (256, 512, 1024, 2048)
ATTENTION_LAYERS = "q_proj,k_proj,v_proj,o_proj"

# Shape, layers to cut it to (None: all of them), methods. A trailing + is mixed precision (autocast).
ALL_METHODS = ("full", "full+", "lora", "lora+", "qlora")
SHAPES: tuple[tuple[str, int | None, tuple[str, ...]], ...] = (
    ("llama-tiny", None, ALL_METHODS),
    ("tinyllama-1.1b", None, ALL_METHODS),
    ("llama-3.2-1b", None, ALL_METHODS),
    ("llama-3.2-3b", None, ALL_METHODS),
    ("llama-2-7b", None, ALL_METHODS),
    ("llama-2-13b", 10, ALL_METHODS),
    ("llama-3-8b", None, ALL_METHODS),
    ("qwen2.5-0.5b", None, ALL_METHODS),
    ("qwen2.5-1.5b", None, ALL_METHODS),
    ("qwen2.5-7b", 14, ALL_METHODS),
    ("qwen3-0.6b", None, ALL_METHODS),
    ("qwen3-4b", 18, ALL_METHODS),
    ("qwen3-8b", 12, ALL_METHODS),
    ("gemma-2-2b", None, ALL_METHODS),
    ("gemma-3-270m", None, ALL_METHODS),
    ("gemma-3-1b", None, ALL_METHODS),
    ("gpt2-124m", None, ("full", "full+", "lora", "lora+")),
    ("gpt2-355m", None, ("full", "full+", "lora", "lora+")),
    ("gpt2-774m", None, ("full", "full+", "lora", "lora+")),
    ("gpt2-1.5b", 24, ("full", "full+", "lora", "lora+")),
    ("mixtral-tiny", None, ("full", "full", "lora", "lora+")),
    ("mixtral-8x7b", 4, ("full", "full", "lora", "lora+")),
    ("bert-base", None, ALL_METHODS),
    ("bert-large", None, ALL_METHODS),
)


def grid() -> Iterator[dict[str, Any]]:
    """Every point of the grid, in order: `shape`, `layers` and the settings of a `TraceRequest`."""
    draw = random.Random(SEED)
    for name, layers, methods in SHAPES:
        for word in methods:
            for _ in range(DRAWS):
                yield {"shape": name, "layers": layers, **_settings(draw, name, word)}


def _settings(draw: random.Random, name: str, word: str) -> dict[str, Any]:
    method, mixed = word.rstrip("+"), word.endswith("+")
    config = shape(name)
    longest = config.get("n_positions") or config["max_position_embeddings"]
    eager = name.startswith("gemma-2") or draw.random() < 0.25
    length = draw.choice([n for n in (EAGER_LENGTHS if eager else LENGTHS) if n <= longest])
    batch = draw.choice([b for b in BATCHES if b * length <= MAX_TOKENS])
    adapters = method != "full"
    by_name = not name.startswith(("gpt2", "bert"))
    attention_only = name.startswith("mixtral") or (by_name and draw.random() < 0.5)
    return {
        "method": method,
        "mixed_precision": mixed,
        "optimizer": "adamw" if adapters else draw.choice(("adamw", "adamw", "adamw", "adamw_8bit", "sgd")),
        "micro_batch": batch,
        "grad_accum": draw.choice((1, 1, 1, 2)),
        "seq_len": length,
        "checkpointing": draw.random() < 0.5,
        "attention": "eager" if eager else "sdpa",
        "lora_rank": draw.choice((8, 16, 32, 64)),
        "lora_targets": ATTENTION_LAYERS if adapters and attention_only else "all_linear",
    }


def request_of(point: dict[str, Any]) -> TraceRequest:
    """The trace of one grid point."""
    settings = {key: value for key, value in point.items() if key not in ("shape", "layers")}
    name, layers = point["shape"], point["layers"]
    return TraceRequest(name=f"{name}-{layers}-layers" if layers else name, config=shape(name, layers), **settings)


def workload_words(point: dict[str, Any], versions: dict[str, str]) -> dict[str, Any]:
    """The same run in the fields of `TrainingWorkload`, plain values."""
    method, mixed = point["method"], point["mixed_precision"]
    words: dict[str, Any] = {
        "method": method,
        "weights_dtype": "nf4" if method == "qlora" else "fp32" if method == "full" and mixed else "bf16",
        "compute_dtype": "bf16",
        "mixed_precision": mixed,
        "optimizer": point["optimizer"],
        "micro_batch": point["micro_batch"],
        "grad_accum": point["grad_accum"],
        "seq_len": point["seq_len"],
        "packed": True,
        "checkpointing": "full" if point["checkpointing"] else "none",
        "attention": point["attention"],
        "sharding": "none",
        "framework": FRAMEWORK,
        "framework_version": f"transformers {versions['transformers']}, torch {versions['torch'].partition('+')[0]}",
    }
    if method != "full":
        targets = point["lora_targets"]
        words["lora_rank"] = point["lora_rank"]
        words["lora_targets"] = targets if targets == "all_linear" else targets.split(",")
    if method == "qlora":
        words["double_quant"] = False
    return words


def identity(number: int, point: dict[str, Any]) -> str:
    """A readable, unique name of one grid point."""
    words = [point["shape"], point["method"] + ("-autocast" if point["mixed_precision"] else ""), point["attention"]]
    words += [f"b{point['micro_batch']}", f"s{point['seq_len']}", "ckpt" if point["checkpointing"] else "keep"]
    return f"{number:03d}-" + "-".join(words)


def main() -> int:
    """Writes the results in the order of the grid; returns 1 where a point gave no figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--match", default="", help="only points whose name contains this")
    options = parser.parse_args()
    points = [(identity(n, p), p) for n, p in enumerate(grid())]
    points = [(name, p) for name, p in points if options.match in name]
    failed = 0
    with options.out.open("w", encoding="utf-8") as out:
        for (name, point), outcome in zip(points, trace_many(request_of(p) for _, p in points), strict=True):
            if isinstance(outcome, TraceError):
                print(f"{name}: {outcome}", file=sys.stderr)
                failed += 1
                continue
            line = {
                "id": name,
                "request": point,
                "model": outcome.model_row,
                "workload": workload_words(point, dict(outcome.versions)),
                "peak_bytes": outcome.peak_bytes,
                "phases": outcome.phases,
                "static_bytes": outcome.static_bytes,
                "trainable_params": outcome.trainable_params,
                "versions": outcome.versions,
            }
            out.write(json.dumps(line, separators=(",", ":")) + "\n")
            out.flush()
    print(f"{len(points) - failed} of {len(points)} traced", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
