"""States of conversations and studies survive being stored, exactly."""

from __future__ import annotations

import dataclasses
import json
from decimal import Decimal
from pathlib import Path

import pytest

from bot.answering import answer
from bot.questions.dialogue import Conversation
from bot.store.codec import from_text, to_text
from bot.store.errors import StateUnreadable
from rules.catalog.catalogue import Catalogue
from scripts.transcripts import FOLDER, messages

FILES = sorted(FOLDER.glob("*.txt"))


def _types(value: object) -> object:
    """The shape of a value with the type of every part, so that a tuple and a list differ."""
    if isinstance(value, dict):
        return ("map", [(key, _types(item)) for key, item in value.items()])
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [_types(item) for item in value])
    if isinstance(value, frozenset):
        return ("set", sorted(map(str, value)))
    if dataclasses.is_dataclass(value):
        return (type(value).__name__, [_types(getattr(value, f.name)) for f in dataclasses.fields(value)])
    return (type(value).__name__, value)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_conversation_goes_on_from_its_stored_state(path: Path) -> None:
    """After each message of a real conversation the stored state equals the live one, part by part, and answers the
    next message with the same words."""
    catalogue = Catalogue.load()
    live = Conversation()
    for message in messages(path.read_text("utf-8"))[1]:
        stored = from_text(to_text(live), Conversation)
        first = answer(message, catalogue=catalogue, conversation=live)
        again = answer(message, catalogue=catalogue, conversation=stored)
        assert again.json() == first.json()
        live = first.conversation
        assert _types(from_text(to_text(live), Conversation)) == _types(live)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"record":["Conversation",{}]}',
        '{"record":["Popen",{"args":"true"}]}',
        '{"decimal":"x"}',
        '{"tuple":[],"set":[]}',
        "[" * 100_000,
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    """A text that is no whole conversation of this version is refused, and nothing unlisted is ever built."""
    with pytest.raises(StateUnreadable):
        from_text(text, Conversation)


def test_a_state_of_another_version_is_refused() -> None:
    """A record with a field more, or one less, is not half read."""
    state = json.loads(to_text(Conversation()))
    state["record"][1]["mood"] = "good"
    with pytest.raises(StateUnreadable, match="mood"):
        from_text(json.dumps(state), Conversation)


def test_what_cannot_be_kept_is_an_error() -> None:
    """An object of a kind that is not listed raises instead of being stored as text."""
    with pytest.raises(TypeError, match="object cannot be stored"):
        to_text(object())


def test_numbers_and_keys_stay_what_they_are() -> None:
    """Decimals, infinities, whole and broken numbers, and keys that are no texts come back as they were."""
    value = {1: Decimal("0.10"), "x": (1, 1.0, True, float("inf")), ("a",): [frozenset(("b", "a"))]}
    assert _types(from_text(to_text(value), dict)) == _types(value)
