"""The house's own rules: import direction, light start, files of readable length."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("rules", "bench_agent", "bot")
HEAVY = ("torch", "transformers", "slack_bolt", "numpy", "scipy", "pynvml", "httpx", "rich")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def modules_after(statement: str) -> set[str]:
    """Top-level modules that a fresh interpreter has imported after `statement`."""
    code = f"import sys\n{statement}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.splitlines()[-1].split())


def test_imports_point_inward() -> None:
    """The contracts of import-linter in pyproject.toml hold."""
    done = subprocess.run([Path(sys.executable).with_name("lint-imports")], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "statement", ["import bot.cli", "import bot.estimate", "import bot.evaluate", "import bench_agent"]
)
def test_start_imports_nothing_heavy(statement: str) -> None:
    """No room imports torch, transformers, Slack, NumPy or a network client merely by being imported."""
    assert modules_after(statement).isdisjoint(HEAVY)


def test_help_needs_no_third_party_package() -> None:
    """`gpufit --help` imports neither pydantic nor any rule."""
    loaded = modules_after("import bot.cli\ntry:\n    bot.cli.main(['--help'])\nexcept SystemExit:\n    pass")
    assert loaded.isdisjoint({"pydantic", "rules", "jinja2", "babel", "rapidfuzz", *HEAVY})


def test_rules_touch_neither_network_nor_clock() -> None:
    """`rules` imports no module that reads a network, a clock, a database, a process or an environment."""
    outside = {"socket", "ssl", "http", "urllib", "httpx", "requests", "sqlite3", "subprocess", "time", "os", "asyncio"}
    for path in sorted((ROOT / "rules").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            assert not outside & {name.partition(".")[0] for name in names}, path


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_are_readable(path: Path) -> None:
    """A source file says what it is for in its docstring and has at most 450 lines."""
    text = path.read_text("utf-8")
    assert ast.get_docstring(ast.parse(text))
    assert len(text.splitlines()) <= 450


def test_tests_state_what_they_specify() -> None:
    """Every test function has a docstring."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                assert ast.get_docstring(node), f"{path.name}: {node.name}"
