"""CPUs: one `Cpu` per row of `data/cpus.csv` (a socket; two sockets have twice its cores, channels and bandwidth)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rules.catalog.errors import CatalogError, UnknownName
from rules.records import dataclass

_CUT = re.compile(r"\(.*?\)|\b\d+\s*x\s+|\bcpu:?|[,;].*$")
_TOKEN = re.compile(r"[a-z0-9+]+")
_DROPPED = frozenset(
    "intel amd xeon core epyc ryzen threadripper gold silver platinum bronze processor cpu gen th nd rd st pro".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """One CPU model, per socket. `bandwidth_gb_s` is theoretical (10**9 bytes a second); plan on 70 to 85 % of it.

    None = not known.
    """

    name: str
    aliases: tuple[str, ...]
    vendor: str
    microarchitecture: str
    segment: str
    cores: int
    threads: int
    memory_type: str
    bandwidth_gb_s: float | None = None
    memory_channels: int | None = None
    base_ghz: float | None = None
    boost_ghz: float | None = None
    avx2: bool = False
    avx512: bool = False
    avx512_vnni: bool = False
    avx512_bf16: bool = False
    amx: bool = False
    avx_vnni: bool = False
    tdp_w: float | None = None
    year: int | None = None
    list_price_usd: float | None = None
    street_price_usd: float | None = None
    price_date: str | None = None
    unverified_fields: tuple[str, ...] = ()
    notes: str = ""

    @property
    def bf16(self) -> bool:
        """True where bf16 products run in hardware (AVX-512 BF16 or AMX)."""
        return self.avx512_bf16 or self.amx

    @classmethod
    def from_row(cls, row: Mapping[str, str]) -> Cpu:
        """Builds one CPU from a CSV row; raises `CatalogError` naming the row and what is wrong."""
        try:
            return cls(
                name=row["name"],
                aliases=tuple(a for a in row["aliases"].split(";") if a),
                vendor=row["vendor"],
                microarchitecture=row["microarchitecture"],
                segment=row["segment"],
                cores=int(row["cores"]),
                threads=int(row["threads"]),
                memory_type=row["memory_type"],
                memory_channels=int(row["memory_channels"]) if row["memory_channels"] else None,
                year=int(row["year"]) if row["year"] else None,
                price_date=row["price_date"] or None,
                unverified_fields=tuple(f for f in row["unverified_fields"].split(";") if f),
                notes=row["notes"] or "",
                **{flag: row[flag] == "1" for flag in _FLAGS},
                **{key: float(row[key]) if row[key] else None for key in _NUMBERS},  # type: ignore[arg-type]
            )
        except (KeyError, ValueError, AttributeError, TypeError) as exc:
            raise CatalogError("cpu_row_invalid", row=row.get("name") or "?", detail=str(exc)) from exc


_FLAGS = ("avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx", "avx_vnni")
_NUMBERS = ("bandwidth_gb_s", "base_ghz", "boost_ghz", "tdp_w", "list_price_usd", "street_price_usd")


class CpuIndex:
    """Resolves CPU names."""

    def __init__(self, cpus: Sequence[Cpu]) -> None:
        self._cpus = cpus
        self._by_key: dict[str, Cpu] = {}
        for cpu in cpus:
            for name in (cpu.name, *cpu.aliases):
                self._by_key.setdefault(" ".join(_words(name)), cpu)

    def find(self, name: str) -> Cpu:
        """The CPU of that name ("2x Xeon Gold 6454S", "epyc 9654"); raises `UnknownName` with near matches."""
        words = _words(_CUT.sub(" ", name.lower()))
        for length in range(len(words), 0, -1):
            for start in range(len(words) - length + 1):
                run = " ".join(words[start : start + length])
                if found := self._by_key.get(run):
                    return found
        raise UnknownName("cpu", name, self._suggestions(words) if words else ())

    def _suggestions(self, words: list[str]) -> tuple[str, ...]:
        from rapidfuzz import fuzz, process

        found = process.extract(" ".join(words), list(self._by_key), scorer=fuzz.ratio, limit=6, score_cutoff=60)
        return tuple(dict.fromkeys(self._by_key[key].name for key, _, _ in found))[:3]


def _words(text: str) -> list[str]:
    words = _TOKEN.findall(re.sub(r"\b(i[3579])\s+", r"\1-", text.lower()))
    kept = [w for w in words if w not in _DROPPED and not re.fullmatch(r"i[3579]", w)]
    return kept or words
