"""Names of models as people write them: "Llama 2 13B" for `meta-llama/Llama-2-13b-hf`.

The publisher and marks of packaging (`-hf`, `-Instruct`, `-it`) go; the family is spelled as the catalogue spells it;
sizes are written with a capital letter (13B, 8x7B, A3B).
"""

from __future__ import annotations

import re

_PACKAGING = re.compile(r"[-_](?:hf|instruct|it)(?=[-_]|$)", re.IGNORECASE)
_PUBLISHER = re.compile(r"^Meta-(?=Llama)")
_UNDERSCORE_FOR_POINT = re.compile(r"(?<=\d)_(?=\d)")
_SIZE = re.compile(r"(?<![A-Za-z0-9.])(?:[ae]?\d+(?:\.\d+)?|\d+x\d+)[bm](?![A-Za-z0-9])", re.IGNORECASE)
_SEPARATOR = re.compile(r"[-_ ]")
_VERSION_AT_END = re.compile(r" \d+$")


def display_name(hf_id: str, family: str) -> str:
    """The name of a text or speech model without publisher and packaging; never empty."""
    name = hf_id.rpartition("/")[2]
    name = _UNDERSCORE_FOR_POINT.sub(".", _PACKAGING.sub("", _PUBLISHER.sub("", name)) or name)
    for spelling in (family, _VERSION_AT_END.sub("", family)):
        rest = _after(name, spelling)
        if rest is not None:
            name = f"{family} {_SEPARATOR.sub(' ', rest)}"
            break
    else:
        name = _SEPARATOR.sub(" ", name)
    return _SIZE.sub(lambda size: size[0].upper().replace("X", "x"), name.strip())


def _after(name: str, spelling: str) -> str | None:
    """What follows `spelling` in `name`, separators and case apart; None where the name does not start so."""
    if not spelling:
        return None
    pattern = "[-_ ]?".join(re.escape(part) for part in _SEPARATOR.split(spelling))
    found = re.match(rf"{pattern}(?=[-_ ]|$)[-_ ]?", name, re.IGNORECASE)
    return name[found.end() :] if found else None
