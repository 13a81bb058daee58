"""From what people write to a `ModelSpec`: exact id, alias, variant of a known model, bare size, scaled neighbour."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from rules.catalog import names
from rules.catalog.errors import UnknownName
from rules.catalog.models import ModelSpec
from rules.catalog.resize import layers_for, scaled_to, with_layers, with_other_head
from rules.records import dataclass

How = Literal["exact", "alias", "variant", "size", "neighbour"]

_HEAD = re.compile(r'\{"hf_id":"([^"]+)","aliases":\[(.*?)\]')
_QUOTED = re.compile(r'"([^"]*)"')
_PARENTHESIS = re.compile(r"\(.*?\)")
_SAME = 0.05  # parameters within 5 % are the same model counted otherwise
_SIMILAR = 0.25  # within 25 % a name that states its size keeps its row (vision tower or tied head counted or not)
_NEAR = 0.08  # a neighbour within 8 % is taken as it stands: published sizes are rounded that far ("7B" is 6.7 to 7.6)
_REFERENCE_FAMILIES = ("Llama 2", "Llama 3", "Llama 3.1", "Llama 3.2", "Qwen2.5", "Qwen3", "Mistral")


_DECODERS = ("decoder", "hybrid-decoder", "ssm")


@dataclass(frozen=True, slots=True)
class ModelMatch:
    """What a name resolved to. `note` is a message id with `note_params`; `weights_format` is what the name implies."""

    spec: ModelSpec
    how: How
    weights_format: str | None = None
    quant_bits: float | None = None
    note: str | None = None
    note_params: Mapping[str, str] | None = None


Row = Mapping[str, Any]


class ModelRows:
    """Catalogue rows, parsed one by one when they are asked for; text lines begin with `hf_id` and `aliases`."""

    def __init__(self, own: Sequence[Row] = (), lines: Sequence[str] = ()) -> None:
        replaced = {str(row["hf_id"]).lower() for row in own}
        heads = [_HEAD.match(line) for line in lines]
        kept = [
            (line, head) for line, head in zip(lines, heads, strict=True) if head and head[1].lower() not in replaced
        ]
        self._named = [(str(row["hf_id"]), tuple(row.get("aliases") or ())) for row in own]
        self._named += [(head[1], tuple(_QUOTED.findall(head[2]))) for _, head in kept]
        self._lines: list[str | None] = [*([None] * len(own)), *(line for line, _ in kept)]
        self._parsed: dict[int, Row] = dict(enumerate(own))

    def named(self) -> Sequence[tuple[str, tuple[str, ...]]]:
        """Id and aliases of every row, without parsing the rows."""
        return self._named

    def __len__(self) -> int:
        return len(self._named)

    def __getitem__(self, i: int) -> Row:
        if i not in self._parsed:
            self._parsed[i] = json.loads(self._lines[i] or "{}")
        return self._parsed[i]

    def __iter__(self) -> Iterator[Row]:
        return (self[i] for i in range(len(self)))


class ModelIndex:
    """Resolves model names over raw catalogue rows; a `ModelSpec` is built only for the row that is asked for."""

    def __init__(self, rows: ModelRows, origins: Sequence[str] | None = None) -> None:
        self._rows = rows
        named = rows.named()
        self._origins = origins or ["catalogue"] * len(rows)
        self._specs: dict[int, ModelSpec] = {}
        self._vocabulary = names.vocabulary()
        self._by_id: dict[str, int] = {}
        self._by_key: dict[str, list[int]] = {}
        self._by_core: dict[str, list[int]] | None = None
        self._tokens: list[list[list[str]]] = []
        for i, (hf_id, aliases) in enumerate(named):
            self._by_id.setdefault(hf_id.lower(), i)
            spellings = []
            for name in (hf_id, *aliases):
                if "/" in name:
                    self._by_id.setdefault(name.lower(), i)
                words = names.tokens(names.split_publisher(name)[1])
                if len(words) > 2 and words[-1] == "16" and words[-2] in ("bf", "fp"):
                    words = words[:-2]  # publishers that put the number format of the reference weights into the name
                spellings.append(words)
                listed = self._by_key.setdefault(" ".join(words), [])
                if i not in listed:
                    listed.append(i)
            self._tokens.append(spellings)
        for key, hf_id in self._vocabulary.alias.items():
            found = self._by_id.get(hf_id.lower())
            if found is not None:
                self._by_key.setdefault(key, []).insert(0, found)

    def spec(self, i: int) -> ModelSpec:
        """The typed row; raises `CatalogError` where the row is invalid."""
        if i not in self._specs:
            self._specs[i] = ModelSpec.from_row(self._rows[i], origin=self._origins[i])
        return self._specs[i]

    def all(self) -> tuple[ModelSpec, ...]:
        """Every model of the catalogue, in file order."""
        return tuple(self.spec(i) for i in range(len(self._rows)))

    def ids(self) -> tuple[str, ...]:
        """Every model's Hub id, in file order."""
        return tuple(hf_id for hf_id, _ in self._rows.named())

    def find(self, name: str | None, params_b: float | None = None, active_params_b: float | None = None) -> ModelMatch:
        """Resolves a name, a size in billions, or both; raises `UnknownName` where neither leads anywhere.

        Where name and size disagree by more than 5 %, the size picks the sibling, cuts the layers or scales.
        """
        params_b, active_params_b = _plausible(params_b), _plausible(active_params_b)
        if not name or not name.strip():
            if params_b is None:
                raise UnknownName("model", name or "")
            return self._of_size(params_b, active_params_b)
        rest, weights_format, bits = names.split_format(name)
        exact = self._by_id.get(name.strip().lower())
        if exact is not None:
            match = self._reconciled(exact, "exact", params_b, active_params_b, sized=True)
        else:
            match = self._by_words(rest, name, params_b, active_params_b)
        return replace(match, weights_format=weights_format, quant_bits=bits) if weights_format else match

    def _by_words(self, rest: str, name: str, params_b: float | None, active_b: float | None) -> ModelMatch:
        vocabulary = self._vocabulary
        publisher, bare = names.split_publisher(rest)
        words = names.tokens(_PARENTHESIS.sub(" ", bare)) or names.tokens(bare)
        stated = _plausible(names.size_b(words))
        sized = stated is not None or names.mixture(words) is not None
        attempts: list[tuple[How, list[str], bool]] = [("alias", words, False)]
        core = names.without_variant(words, vocabulary.variant)
        attempts.append(("variant", core, True))
        lineage = self._lineage(words) or self._lineage(core)
        if lineage:
            attempts.append(("variant", lineage, True))
        plain = names.without_variant(lineage or core, vocabulary.variant | vocabulary.tuned)
        attempts.append(("variant", plain, True))
        attempts.append(("variant", names.without_version(plain), True))
        attempts.append(("variant", names.sizes_last(names.without_version(plain)), True))
        for how, tokens, by_core in attempts:
            found = self._listed(" ".join(tokens), by_core)
            if found:
                row = self._best(found, publisher, params_b)
                return self._reconciled(row, how, params_b, active_b, sized, stated)
        if (shortened := self._abbreviated(lineage or core)) is not None:
            return self._reconciled(shortened, "variant", params_b, active_b, sized, stated)
        if all(names.is_size(w) for w in core) and (params_b or stated):
            return self._of_size(params_b or stated or 0.0, active_b or _plausible(names.active_b(words)))
        contained = self._contained(lineage or core, params_b or stated)
        if contained is not None:
            return self._reconciled(contained, "variant", params_b, active_b, sized, stated)
        size = params_b or stated
        if size:
            if guess := self._respelled(lineage or core):
                found = self._listed(" ".join(guess), by_core=True)
                if found:
                    match = self._reconciled(
                        self._best(found, "", params_b), "neighbour", params_b, active_b, True, stated
                    )
                    return replace(
                        match, note="model_name_guessed", note_params={"name": name, "model": match.spec.display_name}
                    )
            return self._neighbour(lineage or core, size, active_b or _plausible(names.active_b(words)), name)
        raise UnknownName("model", name, self.suggestions(rest))

    def _listed(self, key: str, by_core: bool) -> list[int] | None:
        if found := self._by_key.get(key):
            return found
        return self._cores().get(key) if by_core else None

    def _cores(self) -> dict[str, list[int]]:
        if self._by_core is None:
            self._by_core = {}
            for i, spellings in enumerate(self._tokens):
                for words in spellings:
                    core = " ".join(names.without_variant(words, self._vocabulary.variant))
                    listed = self._by_core.setdefault(core, [])
                    if i not in listed:
                        listed.append(i)
        return self._by_core

    def _lineage(self, words: list[str]) -> list[str] | None:
        text = f" {' '.join(words)} "
        for old in sorted(self._vocabulary.lineage, key=len, reverse=True):
            if f" {old} " in text:
                new = text.replace(f" {old} ", f" {self._vocabulary.lineage[old]} ", 1).split()
                return new if new != words else None
        return None

    def _best(self, found: Sequence[int], publisher: str, params_b: float | None) -> int:
        def rank(i: int) -> tuple[bool, bool, bool]:
            other = bool(publisher) and not self._rows[i]["hf_id"].lower().startswith(publisher.lower() + "/")
            if params_b is None:
                return False, other, False
            return not self._fits(i, params_b), other, abs(params_b * 1e9 / self._rows[i]["params_total"] - 1) > 0.005

        return min(found, key=rank)

    def _fits(self, i: int, params_b: float) -> bool:
        row = self._rows[i]
        total = row["params_total"]
        counts = [total, row.get("params_published"), total - (row.get("vision_params") or 0)]
        counts += [(row.get("components") or {}).get("denoiser")]
        return any(c and abs(params_b * 1e9 / c - 1) <= _SAME for c in counts)

    def _reconciled(
        self,
        i: int,
        how: How,
        params_b: float | None,
        active_b: float | None,
        sized: bool,
        nominal_b: float | None = None,
    ) -> ModelMatch:
        """The row, or what stands for it where the stated size says that it cannot be this row."""
        repeats_name = nominal_b is not None and params_b is not None and abs(params_b / nominal_b - 1) <= 0.02
        if params_b is None or repeats_name or self._fits(i, params_b):
            return ModelMatch(self.spec(i), how)
        spec = self.spec(i)
        ratio = params_b * 1e9 / spec.params_total
        params = {"model": spec.display_name, "row_b": f"{spec.params_b:.3g}", "stated_b": f"{params_b:.4g}"}
        if (other_head := with_other_head(spec)) and abs(params_b * 1e9 / other_head.params_total - 1) <= 0.01:
            return ModelMatch(other_head, "variant", note="model_head_untied", note_params=params)
        if abs(ratio - 1) <= _SIMILAR or spec.domain != "llm":
            return ModelMatch(spec, how, note="model_size_differs", note_params=params)
        if not sized:
            siblings = [j for j, row in enumerate(self._rows) if row["family"] == spec.family]
            nearest = min(siblings, key=lambda j: abs(math.log(self._rows[j]["params_total"] / (params_b * 1e9))))
            if self._fits(nearest, params_b):
                return ModelMatch(self.spec(nearest), "variant")
            scaled = replace(scaled_to(self.spec(nearest), params_b * 1e9, _units(active_b)), origin="neighbour")
            return ModelMatch(scaled, "neighbour", note="model_scaled_from_neighbour", note_params=params)
        cut = with_layers(spec, *layers_for(spec, params_b * 1e9))
        return ModelMatch(cut, "variant", note="model_layers_changed", note_params=params | {"layers": str(cut.layers)})

    def _of_size(self, params_b: float, active_b: float | None) -> ModelMatch:
        table = self._vocabulary.size
        nearest = min(table, key=lambda size: abs(math.log(size / params_b)))
        i = self._by_id.get(table[nearest].lower())
        if active_b or i is None or abs(params_b / nearest - 1) > _SAME:
            return self._neighbour([], params_b, active_b, "")
        spec = self.spec(i)
        return ModelMatch(
            spec, "size", note="model_by_size", note_params={"model": spec.display_name, "size_b": f"{params_b:g}"}
        )

    def _contained(self, words: list[str], size_b: float | None) -> int | None:
        """The row whose tokens all occur in the name in order, most tokens first, with nothing important left over."""
        best, best_count = None, 0
        for i, spellings in enumerate(self._tokens):
            for spelling in spellings:
                core = names.without_variant(spelling, self._vocabulary.variant)
                count = len(core)
                if count <= best_count or not self._leaves_nothing(words, core):
                    continue
                sized = any(names.is_size(w) for w in core)
                if sized or size_b is None or self._fits(i, size_b):
                    best, best_count = i, count
        return best

    def _abbreviated(self, words: list[str]) -> int | None:
        """The only row of the same first word and size whose name has one more token ("nllb 3.3b"), else None."""
        if len(words) < 2 or not words[0].isalpha() or not names.is_size(words[-1]):
            return None
        found = {
            i
            for i, spellings in enumerate(self._tokens)
            for spelling in spellings
            if len(spelling) == len(words) + 1 and spelling[0] == words[0] and spelling[-1] == words[-1]
            if _in_order(words, spelling)
        }
        return found.pop() if len(found) == 1 else None

    def _leaves_nothing(self, words: list[str], core: list[str]) -> bool:
        """True where `core` is an ordered part of `words` and what is left over says nothing about the architecture."""
        at = 0
        left: list[tuple[str | None, str]] = []
        before: str | None = None
        for word in words:
            if at < len(core) and word == core[at]:
                at, before = at + 1, word
                continue
            left.append((before, word))
            before = None
        if at < len(core) or not any(len(w) > 2 and w.isalpha() for w in core):
            return False
        return not any(
            word in self._vocabulary.guarded or names.is_size(word) or (previous is not None and word[0].isdigit())
            for previous, word in left
        )

    def _neighbour(self, words: list[str], size_b: float, active_b: float | None, name: str) -> ModelMatch:
        """A row of the same family, else of a reference family, scaled to the size."""
        nearest = self._nearest(words, size_b, active_b)
        if nearest is None:
            raise UnknownName("model", name, self.suggestions(name))
        base = self.spec(nearest)
        near = abs(size_b * 1e9 / base.params_total - 1) <= _NEAR
        spec = base if near else scaled_to(base, size_b * 1e9, _units(active_b))
        spec = replace(spec, origin="neighbour", hf_id=name or base.hf_id, aliases=())
        params = {"model": base.display_name, "row_b": f"{base.params_b:.3g}", "stated_b": f"{size_b:.4g}"}
        return ModelMatch(spec, "neighbour", note="model_scaled_from_neighbour", note_params=params)

    def _nearest(self, words: list[str], size_b: float, active_b: float | None) -> int | None:
        """The row to scale: a decoder of the family, any row of it, what a word says of the domain, a reference."""

        def distance(i: int) -> float:
            row = self._rows[i]
            params = (row.get("components") or {}).get("denoiser") or row["params_total"]
            off = abs(math.log(params / (size_b * 1e9)))
            if active_b and row.get("params_active"):  # "30b-a3b": both figures of the notation count
                off += abs(math.log(row["params_active"] / (active_b * 1e9)))
            return off

        first = next((w for w in words if w.isalpha() and len(w) > 1), None)
        family = [i for i, spellings in enumerate(self._tokens) if first and any(first in s for s in spellings)]
        decoders = [i for i in family if self._scalable(i, active_b) and self._rows[i]["arch_type"] in _DECODERS]
        if not decoders and (domain := next((w for w in words if w in self._vocabulary.domain), None)):
            family = [self._by_id[self._vocabulary.domain[domain].lower()]]
        others = [i for i in family if self._rows[i]["arch_type"] not in _DECODERS]
        reference = [
            i
            for i in range(len(self._rows))
            if self._scalable(i, active_b)
            and self._rows[i]["arch_type"] == "decoder"
            and (active_b or self._rows[i]["family"] in _REFERENCE_FAMILIES)
        ]
        with_images = [i for i in family if self._rows[i]["arch_type"] == "decoder" and not self._rows[i].get("moe")]
        pool = decoders or others or with_images or reference
        return min(pool, key=distance) if pool else None

    def _scalable(self, i: int, active_b: float | None) -> bool:
        row = self._rows[i]
        return row.get("modality") == "text" and bool(row.get("hidden")) and bool(row.get("moe")) == bool(active_b)

    def _respelled(self, words: list[str]) -> list[str] | None:
        """The tokens with unknown words replaced by the nearest known word, or None where nothing comes near."""
        from rapidfuzz import fuzz, process

        known = {w for spellings in self._tokens for spelling in spellings for w in spelling if len(w) > 3}
        out = []
        for word in words:
            if not word.isalpha() or word in known or len(word) < 3:
                out.append(word)
                continue
            near = process.extractOne(word, known, scorer=fuzz.ratio, score_cutoff=80)
            if near is None:
                return None
            out.append(near[0])
        return out if out != words else None

    def suggestions(self, name: str, limit: int = 3) -> tuple[str, ...]:
        """Catalogue ids whose spelling is near the name, best first."""
        from rapidfuzz import fuzz, process

        wanted = names.key(names.split_publisher(name)[1])
        found = process.extract(wanted, list(self._by_key), scorer=fuzz.WRatio, limit=4 * limit, score_cutoff=70)
        ids = dict.fromkeys(self._rows[self._by_key[key][0]]["hf_id"] for key, _, _ in found)
        return tuple(ids)[:limit]


def _in_order(words: list[str], spelling: list[str]) -> bool:
    rest = iter(spelling)
    return all(word in rest for word in words)


def _plausible(billions: float | None) -> float | None:
    """The size where it could be one (a thousand to 100 trillion parameters), else None."""
    return billions if billions is not None and 1e-6 <= billions <= 1e5 else None


def _units(billions: float | None) -> float | None:
    return None if billions is None else billions * 1e9
