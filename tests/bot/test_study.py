"""`gpufit study`: a comparison is kept, takes measurements and follows them."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from bot.cli import main

QUESTION = "rent or buy for 40 h a week of 13B QLoRA"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty team's folder."""
    monkeypatch.setenv("GPUFIT_HOME", str(tmp_path))
    return tmp_path


def _shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["study", *arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_a_study_goes_from_planned_to_measuring_to_ready(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fourteen days of hours and a measured speed make it ready; each answer uses what is known so far."""
    first = _shown(capsys, "start", "lora", QUESTION)
    assert first["state"] == "planned"
    assert first["hours_per_week"] == 40
    for day in range(1, 15):
        found = _shown(
            capsys, "add", "lora", "--hours", "12", "--tokens-s", str(390 + day), "--day", f"2026-11-{day:02d}"
        )
        assert found["state"] == ("ready" if day == 14 else "measuring")
        assert found["days_measured"] == day
    assert found["hours_per_week"] == pytest.approx(84)
    assert found["rented_tokens_s"] == pytest.approx(397.5)
    assert found["missing"] == []
    assert _shown(capsys, "show", "lora") == found
    ratio = 84 / 40
    assert float(found["rent_usd_per_month"]) == pytest.approx(float(first["rent_usd_per_month"]) * ratio)


def test_a_measured_speed_of_the_owned_machine_changes_its_cost(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A faster machine of one's own needs fewer hours for the same work, so less power."""
    before = _shown(capsys, "start", "lora", QUESTION)
    fast = str(4 * before["owned_tokens_s"])
    after = _shown(capsys, "add", "lora", "--hours", "0", "--tokens-s", fast, "--side", "owned")
    assert float(after["own_usd_per_month"]) < float(before["own_usd_per_month"])


def test_the_file_is_the_users_alone(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The folder is 0700 and the file 0600, also after a change."""
    _shown(capsys, "start", "lora", QUESTION)
    _shown(capsys, "add", "lora", "--hours", "3")
    path = home / "studies" / "lora.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert sorted(p.name for p in path.parent.iterdir()) == [".lock", "lora.json"]


def test_it_is_said_in_the_language_of_the_question(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A Spanish question keeps a study in Spanish; --lang overrides it."""
    assert main(["study", "start", "uno", "alquilar o comprar para 40 h a la semana de QLoRA 13B"]) == 0
    assert "Estudio uno (planificado)" in capsys.readouterr().out
    assert main(["study", "show", "uno", "--lang", "en"]) == 0
    assert "Study uno (planned)" in capsys.readouterr().out
    assert main(["study", "show"]) == 0
    assert capsys.readouterr().out == "uno\n"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["show", "none"], 2, "no study none"),
        (["add", "none", "--hours", "3"], 2, "no study none"),
        (["start", "../up", QUESTION], 2, "small letters"),
        (["start", "x", "what is QLoRA?"], 3, "nothing to study"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    arguments: list[str], code: int, said: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unknown study, a bad name and a question without a comparison end with a sentence and leave no file."""
    assert main(["study", *arguments]) == code
    assert said in capsys.readouterr().err
    assert list(home.rglob("*.json")) == []


@pytest.mark.parametrize("option", [["--hours", "25"], ["--hours", "nan"], ["--hours", "2", "--tokens-s", "-1"]])
def test_impossible_measurements_are_refused(option: list[str], home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A day has 24 hours and a speed is above zero."""
    _shown(capsys, "start", "lora", QUESTION)
    with pytest.raises(SystemExit) as stop:
        main(["study", "add", "lora", *option])
    assert stop.value.code == 2
    assert _shown(capsys, "show", "lora")["state"] == "planned"


def test_a_second_study_of_a_name_keeps_the_first(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Starting again under a name is refused and changes nothing."""
    _shown(capsys, "start", "lora", QUESTION)
    before = (home / "studies/lora.json").read_bytes()
    assert main(["study", "start", "lora", QUESTION]) == 2
    assert (home / "studies/lora.json").read_bytes() == before


@pytest.mark.parametrize("content", ["", "{", "[]", '{"question": 3}', "[" * 100_000])
def test_a_broken_file_is_told_and_kept(content: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is no study ends in one line that names it."""
    (home / "studies").mkdir()
    (home / "studies/bad.json").write_text(content)
    assert main(["study", "show", "bad"]) == 2
    assert "bad.json" in capsys.readouterr().err
    assert (home / "studies/bad.json").read_text() == content
