"""One specification, three pictures: text, PNG and SVG say the same, in both languages."""

from __future__ import annotations

import io
import pickle
import re
import threading
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bot.answering import answer
from bot.answers.charts.builders import break_even, marks_of, memory_breakdown, throughput
from bot.answers.charts.png import png_chart
from bot.answers.charts.scale import number, ticks, x_share, x_ticks
from bot.answers.charts.spec import Bar, BarChart, Chart, Level, LineChart, NumberMarks, Series
from bot.answers.charts.svg import svg_chart
from bot.answers.charts.terminal import text_chart
from bot.answers.layout import Surface
from bot.answers.words import LANGUAGES, words
from bot.cli import main
from rules.catalog.catalogue import Catalogue

SVG = "{http://www.w3.org/2000/svg}"
BARS = BarChart(
    title="Memory", description="d", unit="GiB", bars=(Bar("weights", 8.0), Bar("cache", 4.0), Bar("rest", 0.01)),
    total=Level("total", 12.01), limit=Level("usable", 16.0),
)  # fmt: skip
HOSTILE = '<script>alert("1")</script> & $x_2$ \\frac {{ 7*7 }} %s {0}'


def _break_even(lang: str, *, crossing: bool = True) -> LineChart:
    months = list(range(25))
    return break_even(
        months, [900.0 * m for m in months], [9000 + 180.0 * m for m in months], [8000 + 120.0 * m for m in months],
        [11000 + 260.0 * m for m in months], (12.5, 11250.0) if crossing else None, "USD", words(lang),
    )  # fmt: skip


def _throughput(lang: str) -> LineChart:
    at = [1, 2, 4, 8, 16, 32, 64, 128, 256]
    rate = [4200 * k / (k + 24) for k in at]
    return throughput(at, rate, [0.8 * r for r in rate], [1.25 * r for r in rate], 2500.0, words(lang))


def _memory(lang: str, question: str = "13B fine-tune QLoRA on a 4090") -> BarChart:
    answered = answer(question, catalogue=Catalogue.load(), lang=lang)
    assert answered.advice is not None
    assert answered.advice.plan is not None
    return memory_breakdown(answered.advice.plan, words(lang))


def _all(lang: str) -> list[Chart]:
    return [_memory(lang), _break_even(lang), _break_even(lang, crossing=False), _throughput(lang)]


def test_bars_in_text() -> None:
    """Each bar begins where the one before ends, the limit is one column, a part too small still shows."""
    assert text_chart(BARS, Surface(width=40)).splitlines() == [
        "Memory",
        "  weights  8.0 ███████████▌           │",
        "  cache    4.0             █████▎     │",
        "  rest    <0.1                  ▎     │",
        "  total   12.0 █████████████████▎     │",
        "                        usable 16.0 GiB",
    ]


def test_bars_in_plain_text() -> None:
    """ASCII alone, the same figures."""
    assert text_chart(BARS, Surface(width=40, plain=True)).splitlines() == [
        "Memory",
        "  weights  8.0 ############           |",
        "  cache    4.0             #####      |",
        "  rest    <0.1                  #     |",
        "  total   12.0 #################      |",
        "                        usable 16.0 GiB",
    ]


def test_a_total_above_the_limit_looks_different() -> None:
    """What does not fit is shaded in text and has another colour in the browser."""
    over = replace(BARS, limit=Level("usable", 10.0))
    assert "▒" in text_chart(over, Surface())
    assert "▒" not in text_chart(BARS, Surface())
    assert "#D55E00" in svg_chart(over)
    assert "#D55E00" not in svg_chart(BARS)


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("plain", [False, True])
def test_text_keeps_to_the_width(lang: str, width: int, plain: bool) -> None:
    """No line is wider than the terminal, every label of the specification is there; ASCII in English is ASCII."""
    for chart in _all(lang):
        text = text_chart(chart, Surface(width=width, plain=plain))
        assert max(map(len, text.splitlines())) <= width
        assert chart.title in text
        if plain and lang == "en":
            assert text.isascii()


def test_lines_in_text_rise_and_cross() -> None:
    """The renting line starts at the bottom left and ends at the top right; the mark lies between."""
    rows = text_chart(_break_even("en"), Surface(width=80)).splitlines()[2:14]
    assert "█" in rows[-1][:14]
    assert rows[0].endswith("█")
    assert sum("●" in row for row in rows) == 1
    assert any("░" in row for row in rows)


def _texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter() if element.text]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_svg_is_well_formed_and_says_what_it_shows(lang: str) -> None:
    """It parses, names its title and description for screen readers, and stays inside its box."""
    for chart in _all(lang):
        root = ElementTree.fromstring(svg_chart(chart))
        assert root.tag == f"{SVG}svg"
        assert root.attrib["role"] == "img"
        named = {e.attrib["id"]: e.text for e in root.iter() if "id" in e.attrib}
        assert [named[i] for i in root.attrib["aria-labelledby"].split()] == [chart.title, chart.description]
        width, height = map(float, root.attrib["viewBox"].split()[2:])
        for element in root.iter():
            for name, value in element.attrib.items():
                if name in ("x", "x1", "x2", "cx"):
                    assert 0 <= float(value) <= width
                if name in ("y", "y1", "y2", "cy"):
                    assert 0 <= float(value) <= height
            for x, y in re.findall(r"([\d.-]+),([\d.-]+)", element.attrib.get("points", "")):
                assert 0 <= float(x) <= width
                assert 0 <= float(y) <= height


def test_hostile_text_is_only_text() -> None:
    """Markup, templates, formats and formulas in a label come out as they were typed, in every picture."""
    bars = replace(BARS, title=HOSTILE, description=HOSTILE, bars=(Bar(HOSTILE, 3.0),), limit=Level(HOSTILE, 5.0))
    lines = LineChart(
        title=HOSTILE, description=HOSTILE, x_label=HOSTILE, y_label=HOSTILE,
        lines=(Series(HOSTILE, ((0.0, 0.0), (1.0, 2.0))),), target=Level(HOSTILE, 1.0),
    )  # fmt: skip
    for chart in (bars, lines):
        svg = svg_chart(chart)
        assert "<script" not in svg
        assert HOSTILE in _texts(svg)
        assert png_chart(chart).startswith(b"\x89PNG")
        assert HOSTILE in text_chart(chart, Surface(width=100))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_png_is_a_picture(lang: str) -> None:
    """It decodes, is large enough for a phone, not blank, under 80 kB, and the same every time."""
    from PIL import Image

    for chart in _all(lang):
        content = png_chart(chart)
        assert len(content) < 80_000
        picture = Image.open(io.BytesIO(content)).convert("RGB")
        picture.load()
        assert picture.width == 960
        assert 380 <= picture.height <= 1200
        colours = picture.getcolors(maxcolors=1 << 20)
        assert colours is not None
        white = sum(count for count, colour in colours if colour == (255, 255, 255))
        assert 0.3 < white / (picture.width * picture.height) < 0.95
        assert png_chart(chart) == content


def test_png_off_the_main_thread() -> None:
    """Pictures drawn in several threads at once are the same as one drawn alone."""
    alone, drawn = png_chart(_throughput("en")), []
    threads = [threading.Thread(target=lambda: drawn.append(png_chart(_throughput("en")))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert drawn == [alone] * 4


def test_a_specification_travels_to_another_process() -> None:
    """It is pickled as it is."""
    for chart in _all("es"):
        assert pickle.loads(pickle.dumps(chart)) == chart


def test_parts_and_total_of_a_plan() -> None:
    """Bars add up to the total, parts below a hundredth are one bar, the total is the need that the verdict names."""
    answered = answer("13B fine-tune QLoRA on a 4090", catalogue=Catalogue.load())
    assert answered.advice is not None
    plan, need = answered.advice.plan, answered.advice.verdict.params["need_gib"]
    assert plan is not None
    assert isinstance(need, float)
    chart = memory_breakdown(plan, words("en"), need)
    assert chart.total.value == pytest.approx(need)
    assert sum(bar.value for bar in chart.bars) == pytest.approx(need)
    assert all(bar.value >= 0.01 * need for bar in chart.bars if bar.label != "small parts")
    assert chart.limit is not None
    assert chart.limit.value == plan.usable_gib
    without = memory_breakdown(plan, words("en"))
    assert without.total.value == pytest.approx(plan.shown_by_nvidia_smi.expected_gib)


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("question", ["bge-large on cpu", "sdxl on a 3060", "llama 3 70b on 2 x a100 80gb, vllm"])
def test_any_plan_is_drawn(lang: str, question: str) -> None:
    """Plans of a CPU, of a diffusion model and of several cards are drawn; without usable memory there is no limit."""
    chart = _memory(lang, question)
    assert (chart.limit is None) == ("cpu" in question)
    assert sum(bar.value for bar in chart.bars) == pytest.approx(chart.total.value, rel=0.011)
    assert chart.total.label in text_chart(chart, Surface())
    ElementTree.fromstring(svg_chart(chart))
    assert len(png_chart(chart)) > 5_000


def test_numbers_have_the_marks_of_the_language() -> None:
    """English 1,234.5 is 1.234,5 in Spanish, on axes and beside bars."""
    assert marks_of(words("en")) == NumberMarks(".", ",")
    assert marks_of(words("es")) == NumberMarks(",", ".")
    assert number(12345.0, marks_of(words("es"))) == "12.345"
    assert "10.000" in text_chart(_break_even("es"), Surface())
    assert "10.000" in svg_chart(_break_even("es"))


def test_axes() -> None:
    """Ticks are round and within the axis; a doubling axis has powers of two, evenly apart."""
    assert ticks(23.0, 5) == [0, 5, 10, 15, 20]
    assert ticks(0.7, 3) == pytest.approx([0, 0.2, 0.4, 0.6]) or ticks(0.7, 3) == pytest.approx([0, 0.25, 0.5])
    chart = _throughput("en")
    assert chart.x_doubles
    assert x_ticks(chart, 9) == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert x_share(chart, 16) == pytest.approx(0.5)


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_ask_draws(ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`gpufit ask --chart` answers as ever and leaves the picture; another ending is bad usage."""
    path = tmp_path / f"plan.{ending}"
    assert main(["ask", "13B fine-tune QLoRA on a 4090", "--chart", str(path)]) == 0
    assert "QLoRA" in capsys.readouterr().out
    assert path.read_bytes()[:4] in (b"\x89PNG", b"<svg")
    assert main(["ask", "13B QLoRA", "--chart", str(tmp_path / "plan.gif")]) == 2
    assert main(["ask", "13B QLoRA on a 4090", "--chart", str(tmp_path / "none" / "plan.svg")]) == 2


def test_no_plan_no_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A question about a concept has no memory plan: the answer stands, standard error says why nothing was drawn."""
    path = tmp_path / "plan.svg"
    assert main(["ask", "what is QLoRA?", "--chart", str(path)]) == 0
    assert "nothing to draw" in capsys.readouterr().err
    assert not path.exists()
