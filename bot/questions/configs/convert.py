"""How a config's value becomes one of ours. None means "says nothing" (null, auto, a placeholder); raises `Unread`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from bot.questions.configs.tables import values

_SILENT = frozenset(("", "null", "none", "~", "auto", "default", "..."))
_PLACEHOLDER = re.compile(r"[$<{]|^your[_\-]|^path/to", re.IGNORECASE)
_TRUE = frozenset(("true", "1", "yes", "on", "y"))
_FALSE = frozenset(("false", "0", "no", "off", "n", "disabled"))
_TOKENS = re.compile(r"(\d+(?:\.\d+)?)\s?([kKmM]?)")
_MOST = 10**9
_THOUSAND = {"": 1, "k": 1000, "K": 1024, "m": 1_000_000, "M": 1024 * 1024}
_ALL_LAYERS = 10_000  # -ngl above this is still "all"


class Unread(ValueError):
    """A value that its key cannot have."""


def convert(value: Any, reads_as: str) -> Any:
    """The value in our words; None where it says nothing. Raises `Unread`."""
    if value is None:
        return None
    if isinstance(value, str):
        value = value.strip()
        if reads_as not in ("switch", "ckpt", "flag", "off", "text", "layers") and value.lower() in _SILENT:
            return None
        if value == "" or _PLACEHOLDER.search(value):
            return None
    return CONVERSIONS[reads_as](value)


def _text(value: Any) -> str | None:
    if isinstance(value, (dict, list)):
        return None
    text = str(value)
    return None if text.lower() in ("null", "none", "~") else text


def _number(value: Any) -> float:
    if isinstance(value, (bool, dict, list)):
        raise Unread(str(value))
    try:
        number = float(str(value).rstrip("?,.;)").replace("_", ""))
    except ValueError as exc:
        raise Unread(str(value)) from exc
    if not math.isfinite(number) or abs(number) > _MOST:
        raise Unread(str(value))
    return number


def _int(value: Any) -> int:
    number = _number(value)
    if number != int(number) or number < 0:
        raise Unread(str(value))
    return int(number)


def _float(value: Any) -> float:
    number = _number(value)
    if number < 0:
        raise Unread(str(value))
    return int(number) if number == int(number) else number


def _tokens(value: Any) -> int | None:
    match = _TOKENS.fullmatch(str(value).rstrip("?,.;)")) if not isinstance(value, bool) else None
    if match is None:
        raise Unread(str(value))
    tokens = int(float(match[1]) * _THOUSAND[match[2]])
    if tokens > _MOST:
        raise Unread(str(value))
    return tokens or None  # 0 means "the model's own" wherever it is allowed


def _flag(value: Any) -> bool | None:
    if isinstance(value, (bool, int)):
        return bool(value)
    text = str(value).lower().rstrip("?,.;)")
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if text in _SILENT:
        return None
    raise Unread(str(value))


def _off(value: Any) -> bool | None:
    flag = _flag(value)
    return None if flag is None else not flag


def _switch(value: Any) -> bool | None:
    """A number format's switch: `auto` and `full` turn it on where the card can."""
    return True if str(value).lower() in ("auto", "full") else _flag(value)


def _ckpt(value: Any) -> Any:
    """Activation checkpointing: a switch, or a way of doing it."""
    text = str(value).lower()
    return text if text in ("unsloth", "offload", "offload_disk") else _flag(value)


def _names(value: Any) -> tuple[str, ...] | None:
    parts = value if isinstance(value, list) else re.split(r"[\s,]+", str(value).strip("[]()'\""))
    return tuple(str(p).strip("'\" ") for p in parts if isinstance(p, (str, int))) or None


def _layers(value: Any) -> int | None:
    text = str(value).lower()
    if text in ("all", "max", "-1"):
        return _ALL_LAYERS
    return None if text == "auto" else min(_int(value), _ALL_LAYERS)


def _word_of(kind: str) -> Callable[[Any], str | None]:
    def read(value: Any) -> str:
        table: Mapping[str, str] = values()[kind]
        text = str(value).lower().rpartition(".")[2] if kind in ("dtype", "optimizer") else str(value).lower()
        if text in table:
            return table[text]
        raise Unread(str(value))

    return read


def _quant(value: Any) -> str | None:
    text = str(value).lower()
    if text in values()["quant"]:
        return values()["quant"][text]
    return None  # compressed-tensors and the like: the checkpoint says it itself


CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "text": _text,
    "model": _text,
    "gguf": _text,
    "tag": _text,
    "int": _int,
    "float": _float,
    "tokens": _tokens,
    "flag": _flag,
    "off": _off,
    "switch": _switch,
    "ckpt": _ckpt,
    "names": _names,
    "layers": _layers,
    "dtype": _word_of("dtype"),
    "optimizer": _word_of("optimizer"),
    "kv": _word_of("kv"),
    "attn": _word_of("attn"),
    "quant": _quant,
}
WITHOUT_VALUE = frozenset(("flag", "off", "switch", "ckpt"))  # as an option, these may stand alone
