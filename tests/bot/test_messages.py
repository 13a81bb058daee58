"""Every sentence that the rules can say stands in the text catalogues, and the compiled catalogues are current."""

from __future__ import annotations

import ast
import re
import string
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from bot.answers.words import LANGUAGES, words

ROOT = Path(__file__).resolve().parents[2]
_RAISES = {"Note", "UnsupportedWorkload", "CatalogError", "Finding", "Problem"}


def _ids_in_code() -> set[str]:
    """First literal argument of every note, finding and error with a message id under rules/ and bot/questions/."""
    found = set()
    for path in [*ROOT.glob("rules/**/*.py"), *ROOT.glob("bot/questions/*.py")]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in _RAISES:
                first = node.args[0] if node.args else None
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    found.add(first.value)
    return found


def _ids_in_defaults() -> set[str]:
    table = tomllib.loads((ROOT / "rules/advice/data/defaults.toml").read_text("utf-8"))
    rows = [*table["training"], *table["inference"]]
    return {row["reason"] for row in rows} | {f"assumed_{row['field']}" for row in rows}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_message_id_has_a_sentence(lang: str) -> None:
    """A message id used in the rules or the parser is in the catalogue of each language."""
    say = words(lang)
    assert [] == sorted(i for i in _ids_in_code() | _ids_in_defaults() if not say.knows(i))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_sentence_formats(lang: str) -> None:
    """Each sentence is a valid format whose fields have names."""
    po = (ROOT / f"bot/answers/locale/{lang}/LC_MESSAGES/gpufit.po").read_text("utf-8")
    for message_id in re.findall(r'^msgid "(.+)"$', po, re.M):
        fields = [name for _, name, _, _ in string.Formatter().parse(words(lang)(message_id)) if name is not None]
        assert all(name.isidentifier() for name in fields), message_id


def test_compiled_catalogues_are_current() -> None:
    """The .mo files that ship equal a fresh compilation of the .po files."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts/compile_messages.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_user_text_is_never_a_format() -> None:
    """Braces in a parameter come out as they were typed."""
    assert "{0.__class__}" in words("en").say("unknown_name_bare", {"kind": "model", "name": "{0.__class__}"})
