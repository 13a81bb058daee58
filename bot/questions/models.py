"""Models in a question: family words with version, variant and size, Hub ids, bare sizes, mixture notations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from bot.questions import numbers
from bot.questions.lexicon import EDGE_AFTER, EDGE_BEFORE, Alternatives, Needing, remembered, source, table, word, words
from bot.questions.lexicon.matching import phrase_source
from bot.questions.reader import Reader

_SIZE = r"\d{1,6}(?:[.,]\d{1,3})?\s?[bm](?![a-z0-9])"
_MIXTURE = r"\d{1,3}x\d{1,3}(?:\.\d)?b(?![a-z0-9])"
_MIXTURE_BEFORE = re.compile(rf"{EDGE_BEFORE}({_MIXTURE})\s$")
_ACTIVE = r"a\d{1,3}(?:\.\d{1,2})?b(?![a-z0-9])"
_NOT_A_VERSION = r"x|%|bits?|users|usuarios|gpus|cards|h100|a100|[2-5]0[5-9]0"
_VERSION = rf"(?:(?=v)|(?<!\db\s))v?\d{{1,2}}(?:\.\d{{1,2}})?(?![\dkgx%/]|[.,]\d|\s?(?:{_NOT_A_VERSION})(?![a-z]))"
_DETECTOR = r"(?:(?<=yolo)|(?<=yolo[\s\-]))v?\d{1,2}[nsmlx]6?(?![a-z0-9])"  # YOLO sizes: 8n … 26x, v5l6
_A_LIMIT = r"max\s?[$€£=\d\x01]"  # "70b max 800 $" is no Max
_HUB_ID = Needing(rf"(?<![\w./@])[a-z0-9][\w.\-]{{1,40}}/(?P<name>[a-z][\w.\-]{{2,80}}){EDGE_AFTER}", ("/",))
_NAMED_SIZE = re.compile(
    rf"{EDGE_BEFORE}(?P<name>[a-z][a-z0-9.]{{2,24}}(?:-[a-z0-9.]{{1,16}}){{0,4}})-(?P<size>{_SIZE})"
)
_BARE_MOE = re.compile(rf"{EDGE_BEFORE}(?P<size>{_SIZE})[\s\-_]?(?P<active>{_ACTIVE})")
_BARE_MIXTURE = re.compile(rf"{EDGE_BEFORE}{_MIXTURE}")
_BARE_SIZE = re.compile(
    r"(?<![\w.,/$\-])(?P<sign>-)?(?P<value>\d{1,9}(?:[.,]\d{1,3})?(?:e\d{1,3})?)\s?(?P<unit>b|bn|billion)(?![a-z0-9])"
    r"|(?<![\w.,/$])(?P<value_m>\d{2,4})\s?m(?:illion)?(?:\s(?:param\w*|model\w*))?(?![a-z0-9])"
)
_RELEASE = re.compile(r"v?0\.\d")  # a file's release (v0.1), not a generation of the family
_WORDED_SIZE_MIN = 3  # "a b", "un b" are no sizes
_ACTIVATES = Needing(
    rf"{EDGE_BEFORE}(?:activa|active|activates?|activos|activan)\s(?:only\s|solo\s|just\s)?(?P<a>\d{{1,3}}(?:\.\d)?)\s?b(?![a-z])"
    rf"|{EDGE_BEFORE}(?P<b>\d{{1,3}}(?:\.\d)?)\s?b\s(?:active|activos|activated){EDGE_AFTER}",
    ("activ",),
)
_BEYOND_ANY_B = 1e300  # "1e999B" is impossible all the same, and stays a number
MAX_PARAMS_B = 100_000.0


@remembered
def _families() -> dict[str, str]:
    return {w: domain for domain, words in table("common")["families"].items() for w in words}


def squeezed(name: str) -> str:
    """A name for comparison: without case, separators and publisher."""
    return re.sub(r"[^a-z0-9.]", "", name.lower().rpartition("/")[2])


@remembered
def _names() -> Alternatives:
    return Alternatives(_families(), _name_source)


def _name_source(family: str) -> str:
    variants = table("common")["variants"]
    words = "|".join(variants["kept"] + variants["dropped"])
    part = rf"(?:{_DETECTOR}|{_MIXTURE}|{_ACTIVE}|{_SIZE}|{_VERSION}|\d{{4}}(?=-)|(?!{_A_LIMIT})(?:{words})(?![a-z]))"
    stem = phrase_source(family if family.endswith("-") else family.replace("-", " "))
    return rf"{EDGE_BEFORE}(?P<stem>{stem})(?P<rest>(?:[\s\-_.:]{{0,2}}{part}){{0,7}})(?![a-z]|/[a-z])"


def _whole_name(text: str) -> re.Match[str] | None:
    match = _names().search(text)
    return match if match and match.span() == (0, len(text)) else None


@remembered
def _part() -> re.Pattern[str]:
    return re.compile(
        rf"(?P<detector>{_DETECTOR})|(?P<mix>{_MIXTURE})|(?P<active>{_ACTIVE})|(?P<size>{_SIZE})"
        rf"|(?P<version>{_VERSION})|(?P<word>[a-z]\w*)"
    )


@remembered
def _size_before() -> re.Pattern[str]:
    return re.compile(rf"{EDGE_BEFORE}({_SIZE})\s$")


@remembered
def _worded_size() -> re.Pattern[str]:
    words = "|".join(w for w in numbers.count_words() if " " not in w)
    return re.compile(rf"{EDGE_BEFORE}(?P<word>{words})\sb(?![a-z0-9])")


@remembered
def _parameters() -> tuple[Needing, Needing]:
    """Amounts of parameters: with that word after them, or as a model of so many thousand millions."""
    amount = rf"(?<![\w.,]){numbers.amount_source()}\s?(?P<mag>{numbers.magnitude_source()})"
    after = words("parameters", "model")
    return (
        Needing(rf"{amount}[\s\-](?:{word('filler')}\s)?{source(after)}{EDGE_AFTER}", after),
        Needing(rf"{EDGE_BEFORE}{word('model')}\s{word('filler')}\s{amount}", words("model")),
    )


@remembered
def _like() -> re.Pattern[str]:
    return re.compile(rf"[\s\-]{word('like')}{EDGE_AFTER}")


class ModelWords:
    """Spots model names in folded text; the catalogue's names (`known`) decide whether a size is part of one."""

    def __init__(self, known: Iterable[str]) -> None:
        self._known = {squeezed(name) for name in known}

    def compose(self, match: re.Match[str]) -> tuple[str | None, float | None, float | None]:
        """(normalised name, size in billions, active billions) of a match; the name is None for an ambiguous word."""
        common = table("common")
        stem = re.sub(r"[\s_]+", " ", match.group("stem"))
        parts = list(_part().finditer(match.string, match.start("rest"), match.end("rest")))
        pick = {
            kind: [m.group(kind) for m in parts if m.group(kind)]
            for kind in ("mix", "active", "size", "version", "detector")
        }
        size = _billions(pick["size"][0]) if pick["size"] else None
        active = float(pick["active"][0][1:-1]) if pick["active"] else None
        family = common["display"].get(stem, _stem(stem))
        dropped = set(common["variants"]["dropped"])
        said = [m.group(0) for m in parts if m.group("word") or m.group("version") or m.group("detector")]
        release = [p for p in said if _RELEASE.fullmatch(p)][:1]
        middle = [p for p in said if not _RELEASE.fullmatch(p)]
        if family not in common["families_with_v"]["names"]:
            middle = [re.sub(r"^v(?=\d)", "", p) for p in middle]
            release = []
        kept = [p for p in middle if p not in dropped]
        tail = [t.replace(" ", "").upper().replace("X", "x") for t in (*pick["mix"][:1], *pick["size"][:1])] + [
            a.upper() for a in pick["active"]
        ]
        nicknames = {squeezed(k): v for k, v in common["nicknames"].items()}
        for said_as in (
            [stem, *kept, *tail, *(p for p in middle if p in dropped)],
            [stem, *kept, *tail],
            [stem, *kept],
        ):
            if nickname := nicknames.get(squeezed("-".join(said_as))):
                if len(said_as) == 1 + len(kept) and tail and squeezed(nickname) not in self._known:
                    break
                return nickname, size, active
        joined = bool(kept) and match.group("rest").startswith("-")  # e5-large, not "opt large"
        if stem in common["ambiguous"]["words"] and not (
            joined or pick["mix"] or pick["size"] or pick["version"] or pick["detector"]
        ):
            return None, size, active
        bare = "-".join([family, *kept])
        if squeezed(bare) in self._known and not pick["mix"]:
            return bare, size, active
        return "-".join([bare, *tail, *release]), size, active


def read_models(reader: Reader, words: ModelWords) -> None:
    """Fills `model`, `params_b`, `active_params_b` and the extra `domain`."""
    for m in list(reader.matches(_ACTIVATES)):
        reader.give("active_params_b", float(m.group("a") or m.group("b")), m)
    sized_elsewhere = True
    for m in list(reader.matches(_names(), "model")):
        name, size, active = words.compose(m)
        if (
            name is None
            and size is None
            and (before := _size_before().search(reader.left[max(0, m.start() - 8) : m.start()]))
        ):
            joined = _whole_name(f"{m.group('stem')}-{before.group(1)}")  # "34b yi"
            name = words.compose(joined)[0] if joined else None
        if mixture := _mixture_before(reader, m):
            name = words.compose(mixture)[0] or name
        if name is None and size is None:
            continue
        if _like().match(reader.left, m.end()):
            name = None
        first = "model" not in reader.fields
        domain = _families()[_stem(m.group("stem"))]
        if name is not None and first:
            reader.extra.setdefault("domain", domain)
            reader.give("model", name, m, 0.9)
            sized_elsewhere = size is None
        else:
            reader.claim(m)
        if name is not None or size is not None:
            reader.name("model", **_alternative(name, size))
        if (first or name is None) and size is not None:
            reader.offer("params_b", numbers.tidy(size), *m.span(), 0.9 if first else 0.5)
        if first and active is not None:
            reader.offer("active_params_b", numbers.tidy(active), *m.span())
    _read_unlisted(reader)
    _read_sizes(reader, words, sized_elsewhere)


def _mixture_before(reader: Reader, m: re.Match[str]) -> re.Match[str] | None:
    """A mixture's notation before the family ("8x22b mixtral") is part of the name."""
    before = _MIXTURE_BEFORE.search(reader.left[max(0, m.start() - 12) : m.start()])
    return _whole_name(f"{m.group('stem')}-{before.group(1)}") if before else None


def _alternative(name: str | None, size: float | None) -> dict[str, Any]:
    said = {"model": name, "params_b": None if size is None else numbers.tidy(size)}
    return {field: value for field, value in said.items() if value is not None}


def _stem(text: str) -> str:
    known = _families()
    squeezed_text = re.sub(r"[\s\-_]", "", text)
    return text if text in known else next(w for w in known if re.sub(r"[\s\-_]", "", w) == squeezed_text)


def _read_unlisted(reader: Reader) -> None:
    for pattern in (_HUB_ID, _NAMED_SIZE):
        for m in list(reader.matches(pattern)):
            name = m.group("name")
            if not any(c.isdigit() for c in m.group(0)) or name in ("s", "day", "sec", "hour", "month"):
                continue
            if pattern is _NAMED_SIZE:
                size = _billions(m.group("size"))
                if (said := _formats_word().search(name)) and said.group(0) == name:
                    continue
                reader.offer("params_b", numbers.tidy(size), *m.span(), 0.6)
                name = f"{name}-{m.group('size').upper()}"
            else:
                found = re.search(rf"{EDGE_BEFORE}{_SIZE}", name)
                if found:
                    reader.offer("params_b", numbers.tidy(_billions(found.group(0))), *m.span(), 0.6)
            shown = reader.shown[m.start("name") : m.end("name")] if pattern is _HUB_ID else name
            reader.give("model", shown, m, 0.6)


@remembered
def _formats_word() -> Alternatives:
    return Alternatives(p for options in table("common")["formats"].values() for p in options)


def _read_sizes(reader: Reader, words: ModelWords, wanted: bool) -> None:
    if m := reader.search(_BARE_MIXTURE):
        reader.give("model", f"Mixtral-{m.group(0)[:-1]}B", m, 0.8)
    if m := reader.search(_BARE_MOE):
        reader.offer("active_params_b", numbers.tidy(float(m.group("active")[1:-1])), *m.span())
        reader.give("params_b", numbers.tidy(_billions(m.group("size"))), m)
    for pattern in _parameters():
        for m in list(reader.matches(pattern, "params_b")):
            billions = numbers.amount(m, "n", m.group("mag"), reader.decimal_comma) / 1e9
            reader.name("model", params_b=numbers.tidy(billions))
            if wanted:
                reader.give("params_b", numbers.tidy(billions), m)
            else:
                reader.claim(m)
    for m in list(reader.matches(_worded_size(), "params_b")):
        billions = numbers.count(m.group("word"))
        if billions >= _WORDED_SIZE_MIN:
            reader.give("params_b", billions, m, 0.7)
    for m in list(reader.matches(_BARE_SIZE, "params_b")):
        if m.group("value_m"):
            value = int(m.group("value_m")) / 1000
        else:
            value = min(float(m.group("value").replace(",", ".")), _BEYOND_ANY_B)
        value = -value if m.group("sign") else value
        reader.name("model", params_b=numbers.tidy(value))
        if "params_b" not in reader.fields and wanted:
            reader.give("params_b", numbers.tidy(value), m, 0.85)
            _name_with_size(reader, words, m.group(0))
        else:
            reader.claim(m)
    size = reader.fields.get("params_b")
    if size is not None and not 0 < size <= MAX_PARAMS_B:
        reader.problem("model_size_impossible", "params_b", params_b=size)


def _name_with_size(reader: Reader, words: ModelWords, size: str) -> None:
    """A size said apart from the family ("405b fp8 llama3.1") completes the name."""
    name = reader.fields.get("model")
    if name is None or not re.fullmatch(_SIZE, size.strip()):
        return
    if m := _whole_name(f"{name.lower()}-{size.strip()}"):
        composed, _, _ = words.compose(m)
        reader.fields["model"] = composed or name


def _billions(text: str) -> float:
    value = float(text[:-1].strip().replace(",", "."))
    return value / 1000 if text.endswith("m") else value
