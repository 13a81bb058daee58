"""The lines that the accuracy report is judged by: which rows each counts, its figures and its target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bot.evaluate import Evaluation, Scored, sharded, verdict_groups, weights_class
from bot.evaluate_scores import Errors
from rules.memory.law import footprint
from tests.accuracy.trace_comparison import TRACES, compare, read_traces

JUDGED_FROM = 20
"""Groups with fewer rows are reported, not judged."""


@dataclass(frozen=True, slots=True)
class Line:
    """One target with what was reached; shares are fractions. `met` is None where the group is too small to judge."""

    name: str
    count: int
    target: str
    reached: str
    met: bool | None


def percent(value: float | None, digits: int = 1) -> str:
    """A fraction as per cent, `-` for none."""
    return "-" if value is None else f"{100 * value:.{digits}f} %"


def errors_of(rows: Iterable[Scored]) -> Errors:
    """Errors of some scored values."""
    return Errors.of(row.error for row in rows)


def training_rows(evaluation: Evaluation) -> list[Scored]:
    """Training peaks of high and medium confidence."""
    return evaluation.of("train_memory", "peak_gib_per_gpu")


def stated_statistic(rows: Iterable[Scored]) -> list[Scored]:
    """Rows whose source says which figure it is, so that like is compared with like."""
    return [row for row in rows if row.case.get("statistic") is not None]


def lines(evaluation: Evaluation) -> list[Line]:
    """Every target with what was reached, in the order of the report."""
    return [*_inference(evaluation), *_training(evaluation), *_verdicts(evaluation), *_traces()]


def _traces() -> list[Line]:
    if not TRACES.exists():
        return []
    errors = Errors.of(difference.error for difference in compare(footprint, read_traces()))
    return [
        _line(
            "training law against the exact trace",
            errors,
            ("median", "≤", errors.median, _at_most, 0.03),
            ("90th percentile", "≤", errors.p90, _at_most, 0.08),
        )
    ]


def _line(
    name: str, errors: Errors, *limits: tuple[str, str, float | None, Callable[[float, float], bool], float]
) -> Line:
    targets, reached, met = [], [], True
    for label, sign, value, holds, limit in limits:
        targets.append(f"{label} {sign} {percent(limit, 0)}")
        reached.append(f"{label} {percent(value)}")
        met = met and value is not None and holds(value, limit)
    return Line(
        name, errors.count, ", ".join(targets), ", ".join(reached), met if errors.count >= JUDGED_FROM else None
    )


def _at_most(value: float, limit: float) -> bool:
    return value <= limit


def _at_least(value: float, limit: float) -> bool:
    return value >= limit


def _inference(evaluation: Evaluation) -> list[Line]:
    total = errors_of(evaluation.of("infer_memory", "total_gib"))
    found = [
        _line(
            "inference, total",
            total,
            ("median", "≤", total.median, _at_most, 0.03),
            ("90th percentile", "≤", total.p90, _at_most, 0.12),
            ("supported", "≥", total.supported, _at_least, 0.97),
        )
    ]
    for key, label, limit in (
        ("weights_gib", "weights", 0.02),
        ("kv_gib", "KV cache", 0.02),
        ("compute_buffer_gib", "compute buffer", 0.02),
        ("kv_cache_tokens", "KV tokens of the pool (vLLM, SGLang)", 0.08),
    ):
        errors = errors_of(evaluation.of("infer_memory", key))
        found.append(_line(f"inference, {label}", errors, ("median", "≤", errors.median, _at_most, limit)))
    return found


def _training(evaluation: Evaluation) -> list[Line]:
    rows = stated_statistic(training_rows(evaluation))
    high = errors_of(row for row in rows if row.case["confidence"] == "high")
    both, every = errors_of(rows), errors_of(training_rows(evaluation))
    spread = errors_of(row for row in rows if sharded(row.case))
    silent = errors_of(row for row in training_rows(evaluation) if row.case.get("statistic") is None)
    return [
        _line(
            "training, confidence high",
            high,
            ("median", "≤", high.median, _at_most, 0.06),
            ("within 15 %", "≥", high.within_15, _at_least, 0.80),
        ),
        _line(
            "training, high and medium",
            both,
            ("median", "≤", both.median, _at_most, 0.09),
            ("within 20 %", "≥", both.within_20, _at_least, 0.75),
            ("supported", "≥", every.supported, _at_least, 0.97),
        ),
        _line("training, sharded", spread, ("median", "≤", spread.median, _at_most, 0.12)),
        Line(
            "training, statistic not stated (predicted as reserved)",
            silent.count,
            "reported apart",
            f"median {percent(silent.median)}, within 20 % {percent(silent.within_20)}",
            None,
        ),
    ]


def _verdicts(evaluation: Evaluation) -> list[Line]:
    scores = verdict_groups(evaluation.verdicts)
    found = []
    for name in ("high and medium", "length, batch and method stated"):
        score = scores[name]
        met = (score.balanced_accuracy or 0) >= 0.90 and score.tight_share <= 0.15 and score.false_fits <= 3
        found.append(
            Line(
                f"verdicts, {name}",
                score.count,
                "balanced accuracy ≥ 90 %, tight ≤ 15 %, false “fits” ≤ 3" if not found else "reported apart",
                f"balanced accuracy {percent(score.balanced_accuracy)}, tight {percent(score.tight_share)}, "
                f"false “fits” {score.false_fits} of {score.ooms}",
                None if found or score.count < JUDGED_FROM else met,
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class Peer:
    """The best published peers on a subset, from a reading of their code on both halves of the cases."""

    subset: str
    figures: str
    ours: Errors


def peers(evaluation: Evaluation) -> list[Peer]:
    """Peers beside ours on the same subsets (ours on the half of the cases that this repository holds)."""
    one_gpu = [row for row in training_rows(evaluation) if _one_gpu(row)]
    serving = [row for row in evaluation.of("infer_memory", "total_gib") if _one_gpu(row) and _nothing_on_cpu(row)]
    found = [
        Peer("training, one GPU", "vramcalc 9 % at 30 % coverage; fitcheck 22 % at 96 %", _trainable(one_gpu)),
        *(
            Peer(
                f"training, one GPU, {label}",
                figures,
                errors_of(row for row in one_gpu if row.case["method"] == method),
            )
            for method, label, figures in (
                ("full", "full", "vramcalc 24 %; fitcheck 47 %"),
                ("lora", "LoRA", "vramcalc 7.8 %; fitcheck 15 %"),
                ("qlora", "QLoRA", "fitcheck 23 %; ml-memguard 28 %"),
            )
        ),
        Peer(
            "inference, one GPU, nothing on the CPU",
            "modelinfo 5.8 % at 52 % coverage; llm-x 7.2 % at 85 %",
            errors_of(row for row in serving if row.case.get("engine") in _LANGUAGE_ENGINES),
        ),
    ]
    for weights, figures in (
        ("16-bit", "kvfit 2.6 %; llm-cal 4.2 %"),
        ("quantised", "llm-x 7.1 %; modelinfo 7.1 %"),
        ("GGUF", "gguf-parser 0.6 % (reads the real file); modelinfo 3.2 %"),
    ):
        rows = [row for row in serving if row.case.get("engine") in _LANGUAGE_ENGINES]
        found.append(
            Peer(
                f"inference, one GPU, {weights}",
                figures,
                errors_of(row for row in rows if weights_class(row.case) == weights),
            )
        )
    return found


_LANGUAGE_ENGINES = frozenset(
    "transformers llama.cpp ik_llama.cpp vllm sglang autoawq exllama exllamav2 litgpt gpt-fast gptq-for-llama".split()
)


def _trainable(rows: Sequence[Scored]) -> Errors:
    return errors_of(row for row in rows if row.case["method"] in ("full", "lora", "qlora"))


def _one_gpu(row: Scored) -> bool:
    return (row.case.get("n_gpus") or 1) == 1 and row.case.get("gpu") is not None


def _nothing_on_cpu(row: Scored) -> bool:
    case = row.case
    offloaded = case.get("experts_on_cpu") or case.get("offload") not in (None, "none")
    return not offloaded and case.get("statistic") != "rss" and not case["measured"].get("cpu_weights_gib")
