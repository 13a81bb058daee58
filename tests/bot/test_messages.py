"""Every sentence that can be said stands in the text catalogues of each language, and the compiled ones are current."""

from __future__ import annotations

import ast
import json
import re
import string
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from babel.messages.pofile import read_po

from bot.answers.concepts import topics
from bot.answers.words import LANGUAGES, words
from bot.estimate import Estimator
from rules.catalog.errors import CatalogError
from rules.evidence import CaseError, workload_of
from rules.memory.errors import UnsupportedWorkload
from rules.memory.media.classical import classical_kinds

ROOT = Path(__file__).resolve().parents[2]
SAID = {"Note", "UnsupportedWorkload", "CatalogError", "Finding", "Problem", "problem", "say", "t", "_no_answer", "Say"}
FAMILIES = re.compile(
    r"(?:fit|verdict|option|rule|quick_rule|capability|default|media_default|hub|config)_[a-z0-9_]+[a-z0-9]"
)
NOT_SAID = {"quick_rule_states"}  # a group of reasons
OUTCOMES = ("fits", "tight", "oom", "cpu", "unknown")
TIERS = ("consumer", "workstation", "enterprise", "cpu")


def _python_files() -> list[Path]:
    return [*ROOT.glob("rules/**/*.py"), *ROOT.glob("bot/**/*.py")]


def _calls(path: Path) -> Iterator[ast.Call]:
    return (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call))


def _text(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _ids_in_code() -> set[str]:
    """Literal ids of notes, findings, problems, parts and levers, and every literal of the families of ids."""
    found = set()
    for path in _python_files():
        for call in _calls(path):
            name = getattr(call.func, "id", getattr(call.func, "attr", ""))
            literals = [_text(argument) for argument in call.args]
            first = literals[0] if literals else None
            if name in SAID:
                said = next((text for text in literals if text), "")
                found |= {said} if re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", said) else set()
            elif name == "Part" and len(literals) > 2 and "media_" not in (first or "media_"):
                found |= {f"part_{first}"} | ({literals[2]} if literals[2] else set())
            elif name == "_Move" and first:
                found |= {f"lever_{first}", f"lever_price_{first}"}
        if "rules" in path.relative_to(ROOT).parts[:1]:
            tree = ast.walk(ast.parse(path.read_text("utf-8")))
            constants = {text for node in tree if (text := _text(node)) and FAMILIES.fullmatch(text)}
            found |= constants - NOT_SAID
    return found


def _ids_in_data() -> set[str]:
    """Ids that data files make: defaults, open points and their choices, topics, classical models, outcomes, tiers."""
    table = tomllib.loads((ROOT / "rules/advice/data/defaults.toml").read_text("utf-8"))
    rows = [row for task in table.values() for row in task]
    found = {row["reason"] for row in rows} | {f"assumed_{row['field']}" for row in rows}
    found |= {f"classical_{kind.lower()}" for kind in classical_kinds()}
    for path in (ROOT / "bot/questions").rglob("open_points*.toml"):
        for point in tomllib.loads(path.read_text("utf-8"))["point"]:
            found |= {f"ask_{point['id']}"} | {f"choice_{point['id']}_{c['id']}" for c in point.get("choice", ())}
    for topic in topics():
        found |= {f"concept_{topic.id}"} | ({f"correction_{topic.id}"} if topic.correction else set())
    return found | {f"outcome_{name}" for name in OUTCOMES} | {f"tier_{name}" for name in TIERS}


def _ids_in_templates() -> set[str]:
    pattern = re.compile(r"""\bt(?:\.say)?\(\s*"([a-z0-9_]+)"(?:\s+if\s[^,]+?else\s+"([a-z0-9_]+)")?""")
    found = set()
    for path in ROOT.glob("bot/answers/templates/**/*.j2"):
        for match in pattern.finditer(path.read_text("utf-8")):
            found |= {name for name in match.groups() if name}
    return {name for name in found if not name.endswith("_")}


@cache
def _ids_of_the_laws() -> frozenset[str]:
    """What the laws emit over all published cases: parts with their reasons, phases, notes and assumed fields."""
    estimator, found = Estimator(), set()
    for name in ("train", "infer", "verdicts"):
        for line in (ROOT / f"tests/accuracy/cases/{name}.jsonl").read_text("utf-8").splitlines():
            try:
                plan = estimator.plan(workload_of(json.loads(line)))
            except (CaseError, CatalogError, UnsupportedWorkload, ArithmeticError, ValueError):
                continue
            found |= {f"phase_{plan.footprint.phase}"}
            found |= {text for part in plan.footprint.parts for text in (f"part_{part.name}", part.why)}
            for note in plan.notes:
                found.add(note.message)
                if note.message in ("training_assumed", "media_assumed"):
                    found.add(f"assumed_{note.params['field']}")
            found |= set(plan.fit.reasons) if plan.fit else set()
    return frozenset(found)


@cache
def _catalogue(lang: str) -> Any:
    with (ROOT / f"bot/answers/locale/{lang}/LC_MESSAGES/gpufit.po").open("rb") as file:
        return read_po(file, locale=lang)


def _texts(lang: str) -> dict[str, tuple[str, ...]]:
    """Each id with its text, or with both its plural forms."""
    return {
        message.id[0] if message.pluralizable else message.id: message.string
        if message.pluralizable
        else (message.string,)
        for message in _catalogue(lang)
        if message.id
    }


def _fields(text: str) -> set[tuple[str, str]]:
    return {(name, spec or "") for _, name, spec, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("ids", [_ids_in_code, _ids_in_data, _ids_in_templates, _ids_of_the_laws])
def test_every_message_id_has_a_sentence(lang: str, ids: Any) -> None:
    """A message id used in code, data, templates or by the laws is in the catalogue of each language."""
    say, used = words(lang), ids()
    assert len(used) > 10
    assert sorted(i for i in used if not say.knows(i)) == []


def test_languages_have_the_same_sentences() -> None:
    """Each language has the ids of English, none more, none empty."""
    english = _texts("en")
    for lang in LANGUAGES:
        texts = _texts(lang)
        assert texts.keys() == english.keys()
        assert [i for i, forms in texts.items() if not all(forms)] == []
        assert [i for i in texts if len(texts[i]) != len(english[i])] == []


def test_sentences_have_the_same_parameters_in_every_language() -> None:
    """A translation fills the parameters of the English sentence, in the same formats, form by form."""
    english = _texts("en")
    for lang in LANGUAGES:
        texts = _texts(lang)
        different = [
            i
            for i in english
            for ours, theirs in zip(english[i], texts[i], strict=True)
            if _fields(ours) != _fields(theirs)
        ]
        assert different == []


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_sentence_is_a_valid_format(lang: str) -> None:
    """Parameters have plain names, never attributes, indexes or positions."""
    for message_id, forms in _texts(lang).items():
        assert all(name.isidentifier() for form in forms for name, _ in _fields(form)), message_id


@pytest.mark.parametrize("lang", LANGUAGES)
def test_house_style(lang: str) -> None:
    """No exclamation marks, no doubled spaces, no space at an end, straight apostrophes."""
    bad = [
        i
        for i, forms in _texts(lang).items()
        if any(re.search(r"[!¡’]|  |^\s|\s$", re.sub(r"\{[^}]*\}", "0", form)) for form in forms)
    ]
    assert bad == []


def test_a_plural_form_is_chosen_by_its_count() -> None:
    """One device is named, several are counted; one sequence is not "1 sequences"."""
    say = words("en")
    assert say.say("machine", {"count": 1, "device": "RTX 4090"}) == "RTX 4090"
    assert say.say("machine", {"count": 2, "device": "RTX 4090"}) == "2 x RTX 4090"
    assert "1 seq" not in say.say("limit_sequences", {"n": 1})
    assert words("es").say("limit_sequences", {"n": 12}).startswith("12 secuencias")


def test_parameters_are_written_as_sizes_in_every_language() -> None:
    """Billions are "8.03 B", less is millions; a card known by its memory alone is described, not named."""
    assert words("en").say("weights_in_format", {"params_b": 8.03, "format": "gguf:Q4_K_M"}).startswith("8.03 B")
    assert words("es").say("weights_in_format", {"params_b": 0.125, "format": "awq"}) == "125 M parámetros en AWQ"
    assert words("es").say("machine", {"count": 1, "device": "12 GB GPU"}) == "tarjeta de 12 GB"
    assert "(3,34 B)" in words("es").say(
        "model_scaled_from_neighbour", {"row_b": "3.34", "stated_b": "4", "model": "m"}
    )


def test_compiled_catalogues_are_current() -> None:
    """The .mo files that ship equal a fresh compilation of the .po files."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts/compile_messages.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("typed", ["{0.__class__}", "{model}", "%s %(name)s", "none", "full"])
def test_user_text_is_never_a_format(lang: str, typed: str) -> None:
    """What a user typed comes out as it was typed: no format, no word of a vocabulary."""
    assert typed in words(lang).say("unknown_name_bare", {"kind": "model", "name": typed})


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ("Apple M2 Ultra", "un Apple M2 Ultra"),
        ("DGX Spark (GB10)", "un DGX Spark (GB10)"),
        ("Xeon Platinum 8480+", "un Xeon Platinum 8480+"),
        ("RTX 4090", "una RTX 4090"),
        ("12 GB GPU", "una tarjeta de 12 GB"),
    ],
)
def test_a_device_has_the_article_of_its_gender(device: str, said: str) -> None:
    """Spanish says "un" of machines and processors and "una" of cards; English says "one" of each."""
    params = {"device": device, "count": 1, "model": "X"}
    assert f"cabe en {said}" in words("es").say("verdict_stated_fits", params)
    assert "fits on one " in words("en").say("verdict_stated_fits", params)


def test_no_spanish_sentence_fixes_the_article_of_a_device() -> None:
    """Articles before a device come from its name."""
    text = (ROOT / "bot/answers/locale/es/LC_MESSAGES/gpufit.po").read_text(encoding="utf-8")
    assert not re.findall(r"\b(?:una?|el|la) \{(?:device|machine|gpu|cpu|owned|rented)\}", text)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_best_of_a_tier_names_the_tier(lang: str) -> None:
    """The reason of an option says which tier it is the best of."""
    said = words(lang).say("option_of_tier", {"tier": "enterprise"})
    assert words(lang)("tier_enterprise") in said
