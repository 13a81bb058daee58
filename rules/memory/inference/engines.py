"""What each inference engine does with memory, by version: recipes read from `rules/memory/data/engines.toml`."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib import resources
from typing import Any, Literal

import tomli

from rules.memory.errors import UnsupportedWorkload
from rules.records import dataclass

Family = Literal["ggml", "paged", "eager"]
_LATEST = (9999,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One engine at one version. Fields mean what the data file says; those of other families keep their default."""

    name: str
    family: Family
    statistic: str = "device"
    logs_sum: bool = False
    windows: str = "full"
    latent: str = "latent"
    # ggml
    n_ubatch: int = 512
    context: int = 4096
    pipeline_copies: int = 1
    attention_over_latent: str = "latent"
    experts_on_cpu: bool = False
    flash_default: bool = True
    scratch_on_main: bool = False
    keeps_inputs: bool = False
    latent_copies: bool = False
    # paged
    utilization: float = 0.9
    pool_rule: str = "share_of_card"
    block_size: int = 16
    max_num_seqs: int = 256
    large_max_num_seqs: int = 0
    batched_tokens: int | str = 8192
    large_batched_tokens: int = 0
    chunk_above: int = 0
    chunk_tokens: int = 0
    counts_context: bool = False
    refuses_short_pool: bool = False
    graphs_in_pool: bool = False
    pads_mxfp4: int = 0
    # eager
    cache: str = "grown"
    cache_copies: int = 1
    least_cache_tokens: int = 0
    tokens: int = 1024
    chunk: int = 0
    all_logits: bool = False
    rotary_tables: bool = False
    attention: str = "fused"
    score_bytes: float = 10.0
    embedding_on_cpu: bool = False
    dequantises: tuple[str, ...] = ()
    unpacks: tuple[str, ...] = ()
    unties_head: tuple[str, ...] = ()
    quantises_on_device: bool = False
    host_copies: int = 1


@cache
def _data() -> dict[str, Any]:
    return tomli.loads(resources.files("rules.memory").joinpath("data/engines.toml").read_text("utf-8"))


@cache
def _rows() -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in _data()["engine"]}


def engine_names() -> tuple[str, ...]:
    """Engines with a law of their own, in the order of the data file."""
    return tuple(_rows())


def version_tuple(text: str | None) -> tuple[int, ...]:
    """The numeric version in `text`, build "b2824" as 0.2824; a very high one where it names none (the newest)."""
    match = re.search(r"\d+(?:\.\d+)+", text or "")
    if match:
        return tuple(int(part) for part in match.group(0).split("."))
    build = re.search(r"\bb(\d{3,5})\b", text or "")
    return (0, int(build.group(1))) if build else _LATEST


@lru_cache(maxsize=512)
def engine(name: str | None, version: str | None = None) -> Engine:
    """The recipe of an engine at a version (None: the newest); raises `UnsupportedWorkload` for a name nobody knows."""
    row = _rows().get(_canonical(name or "vllm"))
    if row is None:
        raise UnsupportedWorkload("unknown_engine", engine=str(name))
    fields = {k: v for k, v in row.items() if k not in ("eras", "latent_since")}
    wanted = version_tuple(version)
    for era in row.get("eras", ()):
        word = era.get("word")
        until = version_tuple(era["until"]) if "until" in era else _LATEST
        named = bool(word and re.search(rf"\b{word}\b", (version or "").lower()))
        named = named and (wanted == _LATEST or wanted < until or era.get("lingers", False))
        if named or "until" not in era or (wanted < until and not _other_word(row, version, word)):
            fields.update({k: v for k, v in era.items() if k not in ("until", "word", "lingers")})
            break
    since = row.get("latent_since")
    if since and wanted < version_tuple(since):
        fields["latent"] = "expanded"
    for key in ("dequantises", "unpacks", "unties_head"):
        fields[key] = tuple(fields.get(key, ()))
    return Engine(**fields)


def _other_word(row: dict[str, Any], version: str | None, word: str | None) -> bool:
    """True where the version names an era by word ("V1") that is not `word`."""
    words = {era["word"] for era in row.get("eras", ()) if "word" in era} - {word}
    return any(re.search(rf"\b{w}\b", (version or "").lower()) for w in words)


def _canonical(name: str) -> str:
    key = name.strip().lower()
    aliases = _data()["aliases"]
    short = re.split(r"\s*[+(/,]|\s\d", key)[0].strip()
    for form in (key, short, key.replace(" ", "-"), key.replace("_", "-"), *re.split(r"[-_ ]", short)):
        found: str = aliases.get(form, form)
        if found in _rows():
            return found
    return key
