"""Scores every published case and writes docs/accuracy.md and the headline table of README.md.

Run by `make accuracy` as `python -m scripts.accuracy_report`. Everything in both is computed here from tests/accuracy;
nothing is typed in by hand but the peers' figures, which were read from their code (see `accuracy_lines.peers`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bot.evaluate import Evaluation, Scored, evaluate, verdict_groups
from bot.evaluate_scores import Errors, grouped
from rules.memory.law import footprint
from scripts import accuracy_speed
from scripts.accuracy_lines import Line, errors_of, lines, peers, percent, stated_statistic, training_rows
from tests.accuracy.trace_comparison import TRACES, compare, read_traces, summaries, table

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "accuracy" / "cases"
DOCUMENT = ROOT / "docs" / "accuracy.md"
README = ROOT / "README.md"
START, END = "<!-- accuracy: written by make accuracy -->", "<!-- accuracy: end -->"
SMALLEST_GROUP = 5


def evaluate_all() -> Evaluation:
    """Predicts and scores every memory case and verdict of the repository."""
    files = (CASES / f"{name}.jsonl" for name in ("train", "infer", "verdicts"))
    return evaluate(json.loads(line) for file in files for line in file.read_text("utf-8").splitlines())


def headline(evaluation: Evaluation) -> str:
    """The table of the README: each target, the rows it counts and what was reached."""
    return "\n".join(_lines_table(all_lines(evaluation)))


def all_lines(evaluation: Evaluation) -> list[Line]:
    """Every target of memory and speed with what was reached."""
    return [*lines(evaluation), *accuracy_speed.speed_lines()]


def document(evaluation: Evaluation) -> str:
    """The whole of docs/accuracy.md."""
    return (
        "\n".join([*_opening(), *_lines_table(all_lines(evaluation)), *_peers(evaluation), *_sections(evaluation)])
        + "\n"
    )


def with_headline(readme: str, table: str) -> str:
    """README text with the table between its markers replaced."""
    before, _, rest = readme.partition(START)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"README.md lacks the markers {START} … {END}")
    return f"{before}{START}\n{table}\n{END}{after}"


_OPENING = """\
Written by `make accuracy` from the measured cases in `tests/accuracy/cases` (format: SCHEMA.md there). An error is
predicted / measured - 1; bias is its median with the sign. Rows of confidence high and medium count unless a table
says otherwise; groups under 20 rows are reported, not judged. The laws have few constants, each with a physical
meaning, and know nothing of single cases; they were fitted while these rows were visible, so expect somewhat larger
errors on configurations that are not here."""


def _opening() -> Iterator[str]:
    yield "# How right the predictions are"
    yield ""
    yield _OPENING
    yield ""
    yield "## Targets"
    yield ""


def _lines_table(rows: Sequence[Line]) -> Iterator[str]:
    yield "| what | rows | target | reached | |"
    yield "|---|---|---|---|---|"
    for line in rows:
        mark = {True: "met", False: "missed", None: ""}[line.met]
        yield f"| {line.name} | {line.count} | {line.target} | {line.reached} | {mark} |"


def _peers(evaluation: Evaluation) -> Iterator[str]:
    yield ""
    yield "## Beside other tools"
    yield ""
    yield "Their figures are medians over all collected cases; ours are over the part that this repository holds. A"
    yield "tool that refuses a case is not charged for it, so coverage stands beside the error."
    yield ""
    yield "| subset | other tools, median error | ours, median | ours, 90th percentile | rows | coverage |"
    yield "|---|---|---|---|---|---|"
    for peer in peers(evaluation):
        e = peer.ours
        yield (
            f"| {peer.subset} | {peer.figures} | {percent(e.median)} | {percent(e.p90)} | {e.count} "
            f"| {percent(e.supported, 0)} |"
        )


def _sections(evaluation: Evaluation) -> Iterator[str]:
    yield from _groups("Training", training_rows(evaluation))
    yield from _remaining(training_rows(evaluation))
    yield from _traces()
    for key, title in (
        ("total_gib", "Inference: total"),
        ("weights_gib", "Inference: weights"),
        ("kv_gib", "Inference: KV cache"),
        ("compute_buffer_gib", "Inference: compute buffer"),
        ("kv_cache_tokens", "Inference: tokens in the pool"),
        ("activation_peak_gib", "Inference: activation peak of the start-up profile"),
        ("cpu_weights_gib", "Inference: weights on the CPU"),
    ):
        yield from _groups(title, evaluation.of("infer_memory", key))
    yield from accuracy_speed.speed_sections()
    yield from _verdicts(evaluation)
    yield from _unsupported(evaluation)


_HEAD = ("| group | rows | supported | median | 90th percentile | within 10 % | within 25 % | bias |", "|---" * 8 + "|")


def _groups(title: str, rows: Sequence[Scored]) -> Iterator[str]:
    if not rows:
        return
    yield ""
    yield f"## {title}"
    yield ""
    yield from _HEAD
    yield _row("all", errors_of(rows))
    for dimension, by_label in grouped((row.labels, row.error) for row in rows).items():
        shown = {label: errors for label, errors in by_label.items() if errors.count >= SMALLEST_GROUP}
        if len(by_label) > 1:
            for label, errors in shown.items():
                yield _row(f"{dimension}: {label}", errors)


def _row(name: str, e: Errors) -> str:
    bias = "-" if e.bias is None else f"{100 * e.bias:+.1f} %"
    shares = [percent(share, 0) for share in (e.within_10, e.within_25)]
    cells = [name, str(e.count), percent(e.supported, 0), percent(e.median), percent(e.p90), *shares, bias]
    return f"| {' | '.join(cells)} |"


_RECIPE = frozenset("optimizer mixed_precision gradient_checkpointing fused_loss flash_attention weights_dtype".split())


def _remaining(rows: Sequence[Scored]) -> Iterator[str]:
    """Training errors split by what the source leaves open, each cause alone and then none of them."""
    stated = stated_statistic(rows)
    causes = {
        "recipe unknown (optimizer, precision, checkpointing or loss inferred)": _recipe_open,
        "lengths are caps (samples shorter or padded, not packed)": _lengths_open,
        "allocator (reserved or nvidia-smi, not allocated)": _allocator_counts,
    }
    yield ""
    yield "## Training: what remains, by cause"
    yield ""
    yield "Rows whose statistic is stated. A row can be in several groups; the last has none of the three."
    yield ""
    yield from _HEAD
    for name, holds in causes.items():
        yield _row(name, errors_of(row for row in stated if holds(row)))
        yield _row(
            "- that one alone",
            errors_of(row for row in stated if [c(row) for c in causes.values()].count(True) == 1 and holds(row)),
        )
    yield _row("none of the three", errors_of(row for row in stated if not any(c(row) for c in causes.values())))


def _traces() -> Iterator[str]:
    if TRACES.exists():
        yield ""
        yield "## Training: the law against the exact trace"
        yield ""
        yield "A training step run under fake tensors counts every byte that is allocated, without a GPU and without"
        yield "any fitted constant (`gpufit-agent trace`; versions in tests/accuracy/traces.jsonl)."
        yield ""
        yield table(summaries(compare(footprint, read_traces())))


def _recipe_open(row: Scored) -> bool:
    return bool(_RECIPE & set(row.case.get("inferred") or ()))


def _lengths_open(row: Scored) -> bool:
    return row.case.get("packed") is False or row.case.get("max_seq_len") is not None or row.case.get("seq_len") is None


def _allocator_counts(row: Scored) -> bool:
    return row.case.get("statistic") != "allocated"


def _verdicts(evaluation: Evaluation) -> Iterator[str]:
    yield ""
    yield "## Verdicts"
    yield ""
    yield "Balanced accuracy is the mean of the two recalls; an answer “tight” counts half."
    yield ""
    yield "| group | rows | out of memory | supported | balanced accuracy | tight | false fits | false out-of-memory |"
    yield "|---" * 8 + "|"
    for name, s in verdict_groups(evaluation.verdicts).items():
        yield (
            f"| {name} | {s.count} | {s.ooms} | {percent(s.supported, 0)} | {percent(s.balanced_accuracy)} "
            f"| {percent(s.tight_share)} | {s.false_fits} | {s.false_ooms} |"
        )


def _unsupported(evaluation: Evaluation) -> Iterator[str]:
    reasons: dict[str, int] = {}
    for row in (*evaluation.values, *evaluation.verdicts):
        if row.unsupported:
            reasons[row.unsupported] = reasons.get(row.unsupported, 0) + 1
    if reasons:
        yield ""
        yield "## Not predicted"
        yield ""
        yield from (f"- {count} x {why}" for why, count in sorted(reasons.items(), key=lambda item: -item[1]))


def main() -> int:
    """Writes both files and prints the headline."""
    accuracy_speed.refresh()
    evaluation = evaluate_all()
    table = headline(evaluation)
    DOCUMENT.write_text(document(evaluation), "utf-8")
    README.write_text(with_headline(README.read_text("utf-8"), table), "utf-8")
    print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
