"""The published accuracy is what the code reaches today."""

from __future__ import annotations

import re

import pytest

from bot.evaluate import Evaluation
from scripts.accuracy_lines import lines
from scripts.accuracy_report import DOCUMENT, END, README, START, document, evaluate_all, headline, with_headline

ROUNDING = 0.11  # percentage points: one unit of the last digit shown
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@pytest.fixture(scope="module")
def fresh() -> Evaluation:
    """All cases, scored now."""
    return evaluate_all()


def rows_of(table: str) -> list[str]:
    """The rows of a Markdown table, without its head."""
    return [line for line in table.splitlines() if line.startswith("| ")][1:]


def assert_same_within_rounding(published: list[str], now: list[str]) -> None:
    """Both tables have the same rows, each figure within rounding."""
    assert len(published) == len(now)
    for old, new in zip(published, now, strict=True):
        assert NUMBER.sub("#", old) == NUMBER.sub("#", new)
        for before, after in zip(NUMBER.findall(old), NUMBER.findall(new), strict=True):
            assert abs(float(before) - float(after)) <= ROUNDING, (old, new)


def test_readme_headline_is_current(fresh: Evaluation) -> None:
    """The README's table equals a fresh evaluation within rounding (`make accuracy` rewrites it)."""
    published = README.read_text("utf-8").partition(START)[2].partition(END)[0]
    assert_same_within_rounding(rows_of(published), rows_of(headline(fresh)))


def test_document_headline_is_current(fresh: Evaluation) -> None:
    """The first table of docs/accuracy.md equals a fresh evaluation within rounding."""
    published = DOCUMENT.read_text("utf-8").partition("## Targets")[2].partition("## ")[0]
    assert_same_within_rounding(rows_of(published), rows_of(headline(fresh)))


def test_report_has_every_section(fresh: Evaluation) -> None:
    """The report shows targets, other tools, every group of training and inference, what remains, and verdicts."""
    text = document(fresh)
    for title in ("Targets", "Beside other tools", "Training", "Training: what remains, by cause", "Verdicts"):
        assert f"\n## {title}\n" in text


def test_no_target_of_the_whole_is_judged_on_few_rows(fresh: Evaluation) -> None:
    """A line with fewer than twenty rows is neither met nor missed."""
    assert all(line.met is None for line in lines(fresh) if line.count < 20)


def test_headline_goes_between_the_markers() -> None:
    """Only what stands between the markers is replaced; a README without markers is refused."""
    text = with_headline(f"above\n{START}\nold\n{END}\nbelow\n", "| new |")
    assert text == f"above\n{START}\n| new |\n{END}\nbelow\n"
    with pytest.raises(SystemExit):
        with_headline("no markers", "| new |")
