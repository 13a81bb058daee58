"""How fast the command answers, measured beside a reference of the same run so that figures compare across machines.

In process: what parsing a published question costs (median and slowest), and the worst message of full length. Against
reading a fixed piece of JSON: question to memory plan, and question to the whole answer with
ranked options. From a cold interpreter, against a bare `import pydantic`: the whole `gpufit ask`. Prints a table, with
`--json` the same figures as JSON.
"""

from __future__ import annotations

import compileall
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.figures import run

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS = (
    "13B fine-tune QLoRA",
    "llama 3 70b int4 on 2x4090, 8k ctx, 20 users",
    "full finetune of a 7B on 8 A100 80",
    "bge-large on cpu, 5 rps",
    "sdxl lora on 12 GB",
    "deepseek v3 on 8xH200",
)
CASES = ROOT / "tests/accuracy/cases/questions.jsonl"
LONGEST_CHARS = 4000  # what the parser reads of a message
_PIECES = (
    "4090 ", "llama 3 ", "1", "a-", "1,", "8 users ", "q4_", "2 gpus of ", "foo-13b ", "24gb ", "$1", "x8 ", "千1",
    "5 rps 8k ctx llama 3 70b q4 on 2x4090, 20 users ", "50 mil millones de tokens al día, 2.500 € ", "r 1 bs 1, ",
)  # fmt: skip
_DOCUMENT = json.dumps([{"id": i, "name": f"row {i}", "values": [i / 7, i / 11, None, True]} for i in range(2000)])


def reference() -> None:
    """One unit of the in-process ratio: a fixed JSON document of 2,000 rows, read once."""
    json.loads(_DOCUMENT)


def median_ms(action: Callable[[], object], repeats: int) -> float:
    """Median wall time of `action` in milliseconds, after one call that is not counted."""
    action()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return 1000 * median(times)


def parse_times_ms(texts: list[str], repeats: int) -> list[float]:
    """The best of `repeats` times to parse each text, in milliseconds: what the text costs, without interruptions."""
    from bot.questions.parse import parse
    from rules.catalog.catalogue import Catalogue

    catalogue = Catalogue.load()
    times = []
    for text in texts:
        parse(text, catalogue)
        best = float("inf")
        for _ in range(repeats):
            start = time.perf_counter()
            parse(text, catalogue)
            best = min(best, time.perf_counter() - start)
        times.append(1000 * best)
    return times


def cold_ms(arguments: list[str], repeats: int) -> float:
    """Median wall time in milliseconds of a fresh interpreter with these arguments."""
    return median_ms(lambda: subprocess.run([sys.executable, *arguments], check=True, capture_output=True), repeats)


def measure(repeats: int) -> dict[str, float]:
    """All figures: milliseconds, and ratios to the reference of this run."""
    from bot.answering import answer
    from bot.estimate import Estimator
    from bot.questions.parse import parse
    from bot.questions.workload import to_workload

    for package in ("rules", "bot"):
        compileall.compile_dir(ROOT / package, quiet=1)  # as an installed package is
    estimator = Estimator()
    catalogue = estimator.catalogue

    def plan_all() -> None:
        for question in QUESTIONS:
            workload = to_workload(parse(question, catalogue), catalogue)
            assert workload is not None
            estimator.plan(workload)

    def answer_all() -> None:
        for question in QUESTIONS:
            answer(question, catalogue=catalogue)

    asked = [json.loads(line)["text"] for line in CASES.read_text("utf-8").splitlines()]
    parse_ms = parse_times_ms(asked, 3)
    worst_ms = max(parse_times_ms([(piece * LONGEST_CHARS)[:LONGEST_CHARS] for piece in _PIECES], 3))
    json_ms = median_ms(reference, repeats)
    plan_ms = median_ms(plan_all, repeats) / len(QUESTIONS)
    answer_ms = median_ms(answer_all, repeats) / len(QUESTIONS)
    pydantic_ms = cold_ms(["-c", "import pydantic"], repeats)
    ask_ms = cold_ms(["-m", "bot.cli", "ask", QUESTIONS[0]], repeats)
    help_ms = cold_ms(["-m", "bot.cli", "--help"], repeats)
    return {
        "json_reference_ms": json_ms,
        "parse_median_ms": median(parse_ms),
        "parse_slowest_question_ms": max(parse_ms),
        "parse_slowest_message_ms": worst_ms,
        "parse_and_plan_ms": plan_ms,
        "parse_and_plan_per_reference": plan_ms / json_ms,
        "whole_answer_ms": answer_ms,
        "whole_answer_per_reference": answer_ms / json_ms,
        "import_pydantic_ms": pydantic_ms,
        "cold_ask_ms": ask_ms,
        "cold_ask_per_import_pydantic": ask_ms / pydantic_ms,
        "cold_help_per_import_pydantic": help_ms / pydantic_ms,
    }


if __name__ == "__main__":
    run(__doc__, measure, 15, "measurements of each figure")
