"""A model as configs name it: a Hub id, a folder, a GGUF file, an Ollama tag, a torchtune component."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from bot.questions.models import ModelWords, read_models
from bot.questions.number_formats import read_formats
from bot.questions.reader import Reader
from bot.questions.text import clean
from rules.catalog.errors import CatalogError
from rules.catalog.model_names import ModelMatch
from rules.records import dataclass

_LOCAL = re.compile(r"^(?:[./~]|[A-Za-z]:\\)")
_SPLIT_FILE = re.compile(r"-\d{5}-of-\d{5}$")
_GGUF_TYPE = re.compile(
    r"(?:^|[.\-_: ])(?P<type>(?:UD-)?(?:I?Q\d(?:_[A-Z\d]+)*|B?F16|F32|MXFP4(?:_MOE)?|TQ\d_\d))$", re.IGNORECASE
)
_COMPONENT = re.compile(
    r"^(?:(?P<method>q?lora|dora|qat)_)?(?P<family>[a-z_]+?)_?(?P<version>\d(?:_\d)?)?"
    r"(?P<kind>(?:_(?!\d)[a-z]+)*)(?:_(?P<size>\d+(?:_\d+)?b))?(?P<tail>(?:_[a-z]+)*)$"
)
_RECIPE_FILE = re.compile(r"^(?P<model>[\w.]+)/(?P<size>[\d.]+B)?_?(?P<rest>\w*?)$", re.IGNORECASE)
_LONGEST = 200
_LANGUAGE = "en"
_WORDS: WeakKeyDictionary[Any, ModelWords] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Named:
    """A model's name as the question would say it, with what else the name tells."""

    fields: Mapping[str, Any]
    weights: str | None = None
    domain: str | None = None


def read_name(value: str, reads_as: str, catalogue: Any) -> Named | None:
    """The model behind a config's value; None for a folder or file whose name says nothing."""
    text = value.strip().strip("'\"").rstrip("/\\")[:_LONGEST]
    text = text.removeprefix("hf://").removeprefix("hf.co/").removeprefix("https://huggingface.co/")
    local = bool(_LOCAL.match(value)) or text.count("/") > 1 or "\\" in text
    weights: str | None = None
    last = re.split(r"[/\\]", text)[-1]
    if reads_as in ("gguf", "tag"):
        last = re.sub(r"\.(?:gguf|bin|ggml)$", "", last, flags=re.IGNORECASE)
        last = _SPLIT_FILE.sub("", last)
        if reads_as == "tag":
            last = re.sub(r":latest$", "", last)
        if found := _GGUF_TYPE.search(last):
            weights = f"gguf:{found['type'].upper()}"
            last = last[: found.start()]
        last = last.replace(":", " ")
        last = re.sub(r"[-_.](?:GGUF|i1)$", "", last, flags=re.IGNORECASE)
        text = last
    return _resolved(text, last, weights, local, catalogue)


def read_component(value: str, catalogue: Any) -> tuple[Named | None, str | None]:
    """(model, method) of a torchtune builder such as torchtune.models.llama3_1.lora_llama3_1_8b."""
    last = value.rpartition(".")[2].lower()
    match = _COMPONENT.match(last) if len(last) <= 60 else None
    if match is None:
        return None, None
    name = match["family"].replace("_", "") + (match["version"] or "").replace("_", ".")
    words = [name, *match["kind"].split("_"), (match["size"] or "").replace("_", ".")]
    method = {"lora": "lora", "qlora": "qlora", "dora": "dora"}.get(match["method"] or "", "full")
    whole = " ".join(w for w in words if w)
    return _resolved(whole, whole, None, True, catalogue), method


def read_recipe_file(value: str, catalogue: Any) -> tuple[Named | None, str | None]:
    """(model, method) of a torchtune config's path such as llama3_1/8B_qlora_single_device."""
    match = _RECIPE_FILE.match(value.removesuffix(".yaml")) if len(value) <= 100 else None
    if match is None:
        return None, None
    model = re.sub(r"(?<=\d)_(?=\d)", ".", match["model"]).replace("_", "-")
    whole = f"{model} {match['size'] or ''}".strip()
    named = _resolved(whole, whole, None, True, catalogue)
    return named, recipe_method(match["rest"])


def recipe_method(text: str) -> str | None:
    """The method that a torchtune recipe's name says."""
    for method in ("qlora", "dora", "lora", "full"):
        if re.search(rf"(?:^|_){method}(?:_|$)", text.lower()):
            return method
    return None


def _resolved(whole: str, last: str, weights: str | None, local: bool, catalogue: Any) -> Named | None:
    """Our word for the name where both mean the same model, else the name as it stands."""
    fields, said, domain = _recognised(last if local or "/" in whole else whole, catalogue)
    try:
        known: ModelMatch | None = catalogue.find_model(whole if not local else last.strip() or whole)
    except CatalogError:
        known = None
    if known is not None and known.how in ("size", "neighbour"):
        known = None
    if known is not None:
        weights = weights or known.weights_format
        if not _same(fields, known, catalogue):
            fields = {"model": whole if not local else last.strip()}
            if known.spec.params_total:
                fields["params_b"] = round(known.spec.params_total / 1e9, 1)
    elif "model" not in fields and "params_b" not in fields:
        if local or not whole:
            return None
        fields = {"model": whole}
    return Named(fields, weights or said, domain)


def _recognised(text: str, catalogue: Any) -> tuple[dict[str, Any], str | None, str | None]:
    """What the questions' own recognisers make of a name: (fields, format, domain)."""
    reader = Reader(clean(re.sub(r"-\d{4}(?=-|$)", "", text)), _LANGUAGE)
    formats = read_formats(reader)
    words = _WORDS.get(catalogue)
    if words is None:
        words = _WORDS[catalogue] = ModelWords(catalogue.model_ids)
    read_models(reader, words)
    fields = {k: v for k, v in reader.fields.items() if k in ("model", "params_b", "active_params_b")}
    return fields, formats.weights[0] if formats.weights else None, reader.extra.get("domain")


def _same(fields: Mapping[str, Any], known: ModelMatch, catalogue: Any) -> bool:
    if "model" not in fields:
        return False
    try:
        ours: ModelMatch = catalogue.find_model(fields["model"], fields.get("params_b"), fields.get("active_params_b"))
    except CatalogError:
        return False
    return ours.spec.hf_id == known.spec.hf_id
