"""Cloud instances and hosted notebooks by name: `p4d`, `g5.xlarge`, `a2-highgpu-1g`, `colab`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from rules.catalog import names
from rules.catalog.errors import UnknownName
from rules.catalog.offers import Offer


@cache
def _tables() -> tuple[dict[str, str], dict[str, tuple[str, int]]]:
    raw = names.tables()
    notebooks = {key: (entry["gpu"], int(entry["count"])) for key, entry in raw["notebook"].items()}
    return raw["instance_family"], notebooks


def notebook(name: str) -> tuple[str, int] | None:
    """Accelerator name and count of a hosted notebook, or None where the name is none."""
    words = " ".join(name.lower().replace("-", " ").split())
    return _tables()[1].get(words)


class InstanceIndex:
    """Resolves instance names to offers."""

    def __init__(self, offers: Sequence[Offer]) -> None:
        self._by_name: dict[str, Offer] = {}
        for offer in offers:
            self._by_name.setdefault(_plain(offer.instance), offer)

    def find(self, name: str) -> Offer:
        """The offer of that instance, or of the usual size of that family; raises `UnknownName` with near matches."""
        text = _plain(name)
        families = {_plain(family): _plain(size) for family, size in _tables()[0].items()}
        for key in (text, families.get(text, text)):
            if key in self._by_name:
                return self._by_name[key]
        sizes = [offer for key, offer in self._by_name.items() if _in_family(key, text)]
        if not sizes:
            raise UnknownName("instance", name, self._suggestions(text))
        return min(sizes, key=lambda o: (o.n_gpus, o.vcpus or 0.0))

    def _suggestions(self, text: str) -> tuple[str, ...]:
        from rapidfuzz import fuzz, process

        found = process.extract(text, list(self._by_name), scorer=fuzz.ratio, limit=3, score_cutoff=60)
        return tuple(self._by_name[key].instance for key, _, _ in found)


def _plain(name: str) -> str:
    text = name.lower().strip().replace("_", "-").replace(" ", "-")
    return text.removeprefix("aws-").removeprefix("standard-").removeprefix("ml.")


def _in_family(key: str, text: str) -> bool:
    return len(text) >= 2 and key.startswith(text) and key[len(text)] in ".-"
