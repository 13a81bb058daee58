"""`gpufit store`, `backup` and `cases`, as an operator uses them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot import cli
from bot.answering import answer
from bot.store.clock import SteppedClock, SystemClock
from bot.store.records import Asked, Feedback, Person, Reported
from bot.store.sqlite.store import SqliteStore
from rules.catalog.catalogue import Catalogue

ANN, BEN = Person("T1", "U1"), Person("T1", "U2")


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the settings say that the store lies; nothing is there yet."""
    for name in [name for name in os.environ if name.startswith("GPUFIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GPUFIT_HOME", str(tmp_path))
    monkeypatch.setenv("GPUFIT_DATABASE", str(tmp_path / "s.db"))
    return tmp_path / "s.db"


@pytest.fixture
def store(database: Path) -> Iterator[SqliteStore]:
    """A store in which two people have asked, one long ago, and one has measured."""
    made = SqliteStore(database, SystemClock())
    now = datetime.now(UTC)
    for id, who, at, text in (
        ("old", BEN, now - timedelta(days=400), "sdxl lora on 12 GB"),
        ("new", ANN, now, "13B qlora on a 4090"),
    ):
        made.trail.add(
            Asked(
                id=id,
                who=who,
                channel="C1",
                at=at,
                text=text,
                answer="FITS",
                lang="en",
                rules="0.1.0",
                catalogue="2026-04-01",
                parsed=answer(text, catalogue=Catalogue.load()).parsed,
            )
        )
    told = Reported(key="peak_gib_per_gpu", value=21.3, said="21.3 GiB")
    made.opinions.add(Feedback(answer_id="new", who=ANN, at=now, right=False, reported=told))
    yield made
    made.close()


@pytest.mark.parametrize(
    "command", ["store info", "store purge", "store export", "cases export", "backup x.db", "store info --lang es"]
)
def test_a_missing_store_is_said_in_one_line(command: str, database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a file each command ends in exit code 1 and one line with the path, and makes no file."""
    assert cli.main(command.split()) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert str(database) in said.err
    assert ("no se puede usar" in said.err) == ("es" in command.split())
    assert not database.exists()


def test_wrong_settings_are_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A setting that cannot be used is bad usage, named, without its value."""
    monkeypatch.setenv("GPUFIT_HTTP_PORT", "twelve")
    assert cli.main(["store", "info"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("gpufit: Setting ")
    assert "http_port" in said.lower()
    assert "twelve" not in said


def test_info_in_words_and_as_json(store: SqliteStore, database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The summary names the file, its version and the rows of each kind, in both languages and as JSON."""
    assert cli.main(["store", "info"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{database}: schema 3, ")
    assert "  questions with answers: 2\n" in said
    assert cli.main(["store", "info", "--lang", "es"]) == 0
    assert "  preguntas con respuesta: 2\n" in capsys.readouterr().out
    assert cli.main(["store", "info", "--json"]) == 0
    form = json.loads(capsys.readouterr().out)
    assert (form["path"], form["rows"]["asked"], form["work_open"]) == (str(database), 2, 0)


def test_purge_obeys_the_settings(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is older than the settings keep it goes, also while the bot has the file open."""
    monkeypatch.setenv("GPUFIT_KEEP__ANSWERS_DAYS", "500")
    assert cli.main(["store", "purge", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["deleted"]["asked"] == 0
    monkeypatch.delenv("GPUFIT_KEEP__ANSWERS_DAYS")
    assert cli.main(["store", "purge"]) == 0
    assert "  questions with answers: 1\n" in capsys.readouterr().out
    assert [row.id for row in store.trail.all()] == ["new"]


def test_export_has_every_row_or_one_person_s(store: SqliteStore, capsys: pytest.CaptureFixture[str]) -> None:
    """The trail comes out a line a question, the oldest first, with what was understood."""
    assert cli.main(["store", "export"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["id"] for row in rows] == ["old", "new"]
    assert rows[1]["understood"]["fields"]["params_b"] == 13
    assert cli.main(["store", "export", "--workspace", "T1", "--user", "U1"]) == 0
    assert json.loads(capsys.readouterr().out)["text"] == "13B qlora on a 4090"


def test_cases_come_out_as_the_evaluator_reads_them(
    store: SqliteStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A reported figure is a case of the file format, which `gpufit evaluate` scores; others are counted."""
    store.opinions.add(Feedback(answer_id="old", who=BEN, at=datetime.now(UTC), reported=Reported(key="x", value=1.0)))
    assert cli.main(["cases", "export"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["measured"]["peak_gib_per_gpu"] == 21.3
    assert said.err == "gpufit: Reports that made no case (no model, no machine, or a figure of another kind): 1.\n"
    (tmp_path / "cases.jsonl").write_text(said.out)
    assert cli.main(["evaluate", str(tmp_path / "cases.jsonl"), "--json"]) == 0
    assert '"train_memory"' in capsys.readouterr().out
    assert cli.main(["cases", "export", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 1


def test_backup_and_restore(
    store: SqliteStore, database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A copy is made while the bot runs and overwritten only when told; restoring waits until the bot is stopped."""
    copy = tmp_path / "copy.db"
    assert cli.main(["backup", str(copy)]) == 0
    assert capsys.readouterr().out.startswith(f"{copy}: ")
    assert cli.main(["backup", str(copy)]) == 1
    assert "exists already" in capsys.readouterr().err
    assert cli.main(["backup", str(copy), "--replace", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["version"] == 3
    store.trail.delete(ANN)
    assert cli.main(["backup", str(copy), "--restore"]) == 1
    assert "in use by another process" in capsys.readouterr().err
    store.close()
    assert cli.main(["backup", str(copy), "--restore", "--lang", "es"]) == 0
    assert f"Lo que había queda guardado en {database}.before-restore." in capsys.readouterr().out
    back = SqliteStore(database, SteppedClock(datetime.now(UTC)))
    assert back.trail.get("new") is not None
    back.close()
