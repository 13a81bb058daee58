"""Scores predictions against measured cases, per kind and per group.

Reads the same files as `gpufit estimate` (format: tests/accuracy/cases/SCHEMA.md). The estimator sees each case without
`measured` and `outcome`. Rows of low confidence are predicted and counted apart: headline figures are of high and
medium.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bot.estimate import Estimator
from bot.evaluate_scores import Errors, grouped, signed_error
from bot.evaluate_verdicts import VerdictScore
from rules.catalog.catalogue import Catalogue
from rules.records import dataclass

Case = Mapping[str, Any]

JUDGED = ("high", "medium")
"""Confidences that headline figures count."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One measured value beside its prediction; `key` is the name in `measured`."""

    case: Case
    key: str
    measured: float
    predicted: float | None
    unsupported: str | None
    labels: Mapping[str, str]

    @property
    def error(self) -> float | None:
        """predicted / measured - 1; None without a prediction."""
        return signed_error(self.predicted, self.measured)

    @property
    def judged(self) -> bool:
        """True where the case's confidence is high or medium."""
        return self.case.get("confidence") in JUDGED


@dataclass(frozen=True, slots=True)
class Judged:
    """One verdict beside what happened."""

    case: Case
    happened: str
    said: str | None
    unsupported: str | None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Everything scored: values in the order of the files, verdicts, and how many rows of each kind were read."""

    values: tuple[Scored, ...]
    verdicts: tuple[Judged, ...]
    kinds: Mapping[str, int]
    questions: Mapping[str, Any] | None = None

    def of(self, kind: str, key: str, *, judged: bool = True) -> list[Scored]:
        """Values of one kind and key, of high and medium confidence unless `judged` is False."""
        return [
            row for row in self.values if row.case["kind"] == kind and row.key == key and (row.judged or not judged)
        ]

    def plain(self) -> dict[str, Any]:
        """The JSON report."""
        report: dict[str, Any] = {"rows": dict(self.kinds), "kinds": {}}
        for kind in _MEASURED_KINDS:
            keys = dict.fromkeys(row.key for row in self.values if row.case["kind"] == kind)
            if keys:
                report["kinds"][kind] = {
                    key: _key_report(self.of(kind, key), self.of(kind, key, judged=False)) for key in keys
                }
        if self.verdicts:
            report["kinds"]["verdict"] = _verdict_report(self.verdicts)
        if self.questions is not None:
            report["kinds"]["question"] = dict(self.questions)
        return report


def evaluate(cases: Iterable[Case], estimator: Estimator | None = None) -> Evaluation:
    """Predicts and scores every case; a case that cannot be predicted counts as unsupported."""
    estimator = estimator or Estimator()
    values: list[Scored] = []
    verdicts: list[Judged] = []
    kinds: dict[str, int] = {}
    questions: list[Case] = []
    for case in cases:
        kind = str(case.get("kind") or ("question" if "expected" in case else "unknown"))
        kinds[kind] = kinds.get(kind, 0) + 1
        if kind == "question":
            questions.append(case)
        elif kind == "verdict":
            answer = estimator.answer(_hidden(case))
            verdicts.append(Judged(case, str(case["outcome"]), answer.get("outcome"), _why(answer)))
        elif kind in _MEASURED_KINDS:
            values.extend(_scored(case, estimator))
    return Evaluation(tuple(values), tuple(verdicts), kinds, _questions(questions, estimator.catalogue))


def _hidden(case: Case) -> dict[str, Any]:
    return {key: value for key, value in case.items() if key not in ("measured", "outcome", "oom_kind", "notes")}


def _why(answer: Mapping[str, Any]) -> str | None:
    return answer.get("unsupported") or answer.get("error")


def _scored(case: Case, estimator: Estimator) -> list[Scored]:
    answer = estimator.answer(_hidden(case))
    predicted = answer.get("predicted") or {}
    labels = labels_of(case, estimator)
    keys = SPEED_KEYS if case["kind"].endswith("_speed") else MEMORY_KEYS
    return [
        Scored(case, key, float(value), predicted.get(key), _why(answer), labels)
        for key, value in case["measured"].items()
        if key in keys and value
    ]


_MEASURED_KINDS = ("train_memory", "infer_memory", "train_speed", "infer_speed")
MEMORY_KEYS = (
    "peak_gib_per_gpu total_gib weights_gib kv_gib compute_buffer_gib kv_cache_tokens non_torch_gib "
    "activation_peak_gib cpu_weights_gib cuda_graph_gib"
).split()
"""Measured values that the memory laws predict."""
SPEED_KEYS = (
    "tokens_per_s_per_gpu samples_per_s step_s mfu decode_tok_s prefill_tok_s total_tok_s ttft_ms tpot_ms requests_s "
    "latency_ms prompt_plus_gen_tok_s gen_tok_s_incl_prefill samples_s steps_s realtime_factor encoder_ms"
).split()
"""Measured values that the laws of speed predict."""


def labels_of(case: Case, estimator: Estimator) -> dict[str, str]:
    """The groups that a case belongs to, by dimension."""
    labels = {
        "confidence": str(case.get("confidence")),
        "statistic": str(case.get("statistic") or "not stated"),
        "gpu class": estimator.gpu_class(case),
        "devices": "one" if (case.get("n_gpus") or 1) == 1 else "several",
        "domain": str(case.get("domain") or "llm"),
    }
    if case["kind"].startswith("train_"):
        labels["method"] = str(case.get("method"))
        labels["sharded"] = "sharded" if sharded(case) else "one device"
        labels["framework"] = str(case.get("framework"))
        labels["framework and method"] = f"{case.get('framework')}, {case.get('method')}"
    else:
        labels["engine"] = str(case.get("engine"))
        labels["weights"] = weights_class(case)
    return labels


def sharded(case: Case) -> bool:
    """True where the training state or the model is spread over devices (any plan but none and plain DDP)."""
    return (case.get("sharding") or "none") not in ("none", "ddp")


def weights_class(case: Case) -> str:
    """`16-bit`, `quantised` or `GGUF`, as peers' figures are split."""
    weights = str(case.get("weights_format") or "").lower()
    if weights.startswith("gguf") or case.get("engine") in ("llama.cpp", "ik_llama.cpp"):
        return "GGUF"
    return "16-bit" if weights in ("bf16", "fp16", "") else "32-bit" if weights == "fp32" else "quantised"


def _key_report(judged: Sequence[Scored], every: Sequence[Scored]) -> dict[str, Any]:
    groups = grouped((row.labels, row.error) for row in judged)
    return {
        "high and medium": Errors.of(row.error for row in judged).plain(),
        "all confidences": Errors.of(row.error for row in every).plain(),
        "groups": {
            dimension: {label: errors.plain() for label, errors in by_label.items()}
            for dimension, by_label in groups.items()
        },
    }


def _verdict_report(rows: Sequence[Judged]) -> dict[str, Any]:
    return {name: score.plain() for name, score in verdict_groups(rows).items()}


def verdict_groups(rows: Sequence[Judged]) -> dict[str, VerdictScore]:
    """Verdict scores: high and medium, those that state what decides, by task, and all confidences."""
    judged = [row for row in rows if row.case.get("confidence") in JUDGED]
    groups = {
        "high and medium": judged,
        "high": [row for row in judged if row.case["confidence"] == "high"],
        "length, batch and method stated": [row for row in judged if states_shape(row.case)],
        "training": [row for row in judged if row.case.get("task") == "training"],
        "inference": [row for row in judged if row.case.get("task") != "training"],
        "all confidences": list(rows),
    }
    return {name: VerdictScore.of((row.happened, row.said) for row in group) for name, group in groups.items()}


def states_shape(case: Case) -> bool:
    """True where the case itself states length (or image size), batch and method (or weights format)."""
    inferred = set(case.get("inferred") or ())

    def stated(*keys: str) -> bool:
        return any(case.get(key) is not None and key not in inferred for key in keys)

    length = stated("seq_len", "context", "input_len", "resolution", "image_size")
    batch = stated("micro_batch", "batch", "concurrency")
    return length and batch and stated("method", "weights_format")


def _questions(rows: Sequence[Case], catalogue: Catalogue) -> Mapping[str, Any] | None:
    if not rows:
        return None
    from bot.evaluate_questions import score_questions
    from bot.questions.parse import parse

    return score_questions(rows, lambda text: parse(text, catalogue))
