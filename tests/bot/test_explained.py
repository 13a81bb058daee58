"""`--explain`, a team's constraints on the command line, and the chart of what was asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.answering import answer
from bot.answers.charts.of_advice import break_even_chart, memory_chart, throughput_chart
from bot.answers.explained import explained
from bot.answers.layout import Surface
from bot.answers.words import words
from bot.cli import main
from rules.advice.types import Advice
from rules.catalog.catalogue import Catalogue

QUESTION = "llama 3 8b to 30 concurrent users"
CONSTRAINTS = """
[[constraint]]
id = "no-consumer"
exclude = 'tier == "consumer"'
reason = "no support"

[[constraint]]
id = "power"
exclude = "watts > 500"
"""


def _advice(question: str) -> Advice:
    found = answer(question, catalogue=Catalogue.load()).advice
    assert found is not None
    return found


def _team(folder: Path, text: str) -> list[str]:
    (folder / "policy.toml").write_text(text, "utf-8")
    return ["--overrides", str(folder)]


def test_every_rule_option_and_exclusion_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Below the answer stand the rules with their figures, the options with theirs, and what constraints keep out."""
    assert main(["ask", QUESTION, "--explain", *_team(tmp_path, CONSTRAINTS)]) == 0
    shown = capsys.readouterr().out
    working = shown[shown.index("Rules that fired") :]
    assert "inference.cpu_concurrency (I2): sequences 30" in " ".join(working.split())
    assert "option_cheapest_to_rent" in working
    kept_out = working[working.index("Kept out") :]
    assert "no-consumer (no support):" in kept_out
    assert "RTX 5090" in kept_out
    assert "power" in kept_out
    assert "RTX 5090" not in shown[shown.index("Options") : shown.index("Rules that fired")]


@pytest.mark.parametrize("lang", ["en", "es"])
def test_an_advice_explains_each_fired_rule(lang: str) -> None:
    """Every rule id, option and headline id of the advice is in the text."""
    advice = _advice(QUESTION)
    text = " ".join(explained(advice, words(lang), Surface()).split())
    assert advice.fired
    for fired in advice.fired:
        assert f"{fired.rule} ({fired.requirement})" in text
    for note in (advice.verdict, *advice.headlines.values()):
        assert note.message in text
    for option in advice.options:
        assert option.hardware in text


def test_without_the_flag_nothing_of_it_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """The working appears only where it is asked for."""
    assert main(["ask", QUESTION]) == 0
    assert "Rules that fired" not in capsys.readouterr().out


def test_a_bad_expression_in_a_policy_is_refused_when_it_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2 and one line with the file, the expression and the names that it may use."""
    bad = '[[constraint]]\nid = "x"\nexclude = "colour == 3"\n'
    assert main(["ask", QUESTION, *_team(tmp_path, bad)]) == 2
    said = capsys.readouterr().err
    assert "policy.toml" in said
    assert "colour == 3" in said
    assert "it may name: device" in said


def test_a_limit_on_spend_says_nothing_of_what_is_bought(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A constraint on the hourly price keeps out dear rentals and is not uncertain about cards that are bought."""
    spend = '[[constraint]]\nid = "spend"\nexclude = "usd_per_hour > 3"\n'
    assert main(["ask", QUESTION, "--explain", *_team(tmp_path, spend)]) == 0
    kept_out = capsys.readouterr().out.split("Kept out")[1]
    assert "spend: " in kept_out
    assert "not certain" not in kept_out


def test_the_chart_of_renting_and_owning_follows_the_comparison() -> None:
    """Its lines are the curve of the advice; a mark stands where they meet, within the months drawn."""
    advice = _advice("rent or buy a machine to serve llama 3 70b 168 h a week")
    chart = break_even_chart(advice, words("en"))
    assert chart is not None
    assert advice.rent_or_buy is not None
    curve = advice.rent_or_buy.break_even.curve
    assert [y for _, y in chart.lines[0].points] == pytest.approx([float(p.rent) for p in curve])
    assert [y for _, y in chart.lines[1].points] == pytest.approx([float(p.own) for p in curve])
    assert (chart.mark is not None) == (advice.rent_or_buy.break_even.cheaper == "own")
    if chart.mark is not None:
        assert 0 < chart.mark.at[0] <= curve[-1].month


def test_the_chart_of_capacity_has_the_asked_rate_as_its_target() -> None:
    """Five requests a second of 256 tokens are a line at 1,280 tokens a second."""
    chart = throughput_chart(_advice("how many requests per second llama 3 8b on an H100, we need 5 rps"), words("en"))
    assert chart is not None
    assert chart.target is not None
    assert chart.target.value == pytest.approx(5 * 256)
    assert chart.mark is not None


def test_an_advice_without_a_comparison_has_no_such_chart() -> None:
    """A question of fit has a memory chart and neither of the others."""
    advice = _advice("llama 2 13b qlora on a 4090")
    assert memory_chart(advice, words("en")) is not None
    assert break_even_chart(advice, words("en")) is None
    assert throughput_chart(advice, words("en")) is None


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("rent or buy for 40 h a week of 13B QLoRA", "Rent or buy"),
        ("how many users can llama 3 8b serve on a 4090", "Throughput"),
        ("llama 3 8b on a 4090", "Memory on"),
    ],
)
def test_the_picture_is_of_what_was_asked(question: str, title: str, tmp_path: Path) -> None:
    """Cost draws money over time, capacity throughput, anything else memory."""
    picture = tmp_path / "picture.svg"
    assert main(["ask", question, "--chart", str(picture)]) == 0
    assert title in picture.read_text("utf-8")
