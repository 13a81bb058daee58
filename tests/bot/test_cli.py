"""The command line: help, errors and exit codes of every command."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from bot import cli

CASE = {
    "id": "sample",
    "kind": "train_memory",
    "model": "meta-llama/Llama-2-7b-hf",
    "params_b": 6.74,
    "gpu": "A100-80GB",
    "n_gpus": 1,
    "gpu_mem_gib": 80,
    "method": "lora",
    "weights_dtype": "bf16",
    "micro_batch": 1,
    "seq_len": 2048,
    "statistic": "allocated",
}


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`gpufit COMMAND --help` exits 0 and shows the command's own example."""
    with pytest.raises(SystemExit) as stop:
        cli.main([name, "--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert cli.COMMANDS[name].example in shown
    assert f"usage: gpufit {name}" in shown


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_example_parses(name: str) -> None:
    """The example of a command is accepted by its own parser."""
    import shlex

    words = shlex.split(cli.COMMANDS[name].example.split("|")[-1])
    assert words[:2] == ["gpufit", name]
    parser = cli.command_parser(name, importlib.import_module(cli.COMMANDS[name].module))
    assert parser.parse_args(words[2:])


def test_overview_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """`gpufit --help` names every command with its summary."""
    with pytest.raises(SystemExit) as stop:
        cli.main(["--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    for name, command in cli.COMMANDS.items():
        assert f"  {name} " in shown
        assert command.summary in shown


def test_version_is_the_distribution_s(capsys: pytest.CaptureFixture[str]) -> None:
    """`gpufit --version` prints the installed version."""
    from importlib.metadata import version

    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"gpufit {version('gpufit')}"


def test_unknown_command_is_one_line_with_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt command ends in exit code 2 and one line on standard error that names the nearest command."""
    assert cli.main(["estimat"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert '"estimate"' in captured.err


def test_missing_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that does not exist ends in exit code 2 and one line that names it."""
    missing = str(tmp_path / "none.jsonl")
    for arguments in (["evaluate", missing], ["estimate", "--batch", missing]):
        assert cli.main(arguments) == 2
        captured = capsys.readouterr()
        assert captured.err.startswith("gpufit: ")
        assert missing in captured.err
        assert captured.err.count("\n") == 1


def test_unexpected_error_shows_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A defect ends in exit code 1 and one line; GPUFIT_DEBUG=1 lets the traceback through."""
    import bot.commands.evaluate as command

    def fail(args: object) -> int:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(command, "run", fail)
    monkeypatch.delenv("GPUFIT_DEBUG", raising=False)
    assert cli.main(["evaluate", "x"]) == 1
    assert capsys.readouterr().err == "gpufit: unexpected RuntimeError: two lines (GPUFIT_DEBUG=1 shows where)\n"
    monkeypatch.setenv("GPUFIT_DEBUG", "1")
    with pytest.raises(RuntimeError):
        cli.main(["evaluate", "x"])


def test_estimate_reads_one_case_from_standard_input() -> None:
    """`gpufit estimate --json` answers the one case on standard input with one JSON object."""
    done = subprocess.run(
        [sys.executable, "-m", "bot.cli", "estimate", "--json"],
        input=json.dumps(CASE, indent=2),
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout)
    assert answer["id"] == "sample"
    assert answer["unsupported"] is None
    assert 13 < answer["predicted"]["peak_gib_per_gpu"] < 30
    assert answer["outcome"] == "fits"


def test_estimate_goes_on_after_a_bad_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A bad line of a batch gives an error object in its place and the other lines are answered."""
    batch = tmp_path / "cases.jsonl"
    batch.write_text(f"{json.dumps(CASE)}\n{{broken\n[1]\n\n{json.dumps(CASE | {'id': 'last'})}\n")
    assert cli.main(["estimate", "--json", "--batch", str(batch)]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["id"] for answer in answers] == ["sample", None, None, "last"]
    assert "line 2" in answers[1]["error"]
    assert "error" in answers[2]
    assert answers[0]["predicted"] == answers[3]["predicted"]
