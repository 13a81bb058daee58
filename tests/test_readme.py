"""The README's promises: its commands run, its links lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
    if "gpufit " in line and not line.startswith("make")
]


def test_commands_are_found() -> None:
    """The README shows at least one use of ask, chat, parse, catalog, estimate and evaluate."""
    shown = " ".join(COMMANDS)
    for name in ("ask", "chat", "parse", "catalog", "estimate", "evaluate"):
        assert f"gpufit {name}" in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_command_runs(command: str) -> None:
    """A command of the README exits 0, prints something and writes nothing to standard error."""
    gpufit = f"{shlex.quote(sys.executable)} -m bot.cli"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command.replace("gpufit", gpufit)], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert done.stderr == ""


def test_links_lead_somewhere() -> None:
    """Every relative link of the README is a file of the repository."""
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target
