"""Accelerators: one `Accelerator` per row of `data/gpus.csv` (units and conventions in `data/README.md`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from rules.catalog.errors import CatalogError
from rules.records import dataclass
from rules.units import GIB

Tier = Literal["datacenter", "workstation", "consumer", "integrated", "cloud_only"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One GPU, TPU or unified-memory chip. None = not known; 0 in a rate = the hardware has no such unit.

    `memory_gib` is what nvidia-smi calls total (2**30 bytes); rates are dense TFLOPS (TOPS for int8) with fp32
    accumulate; `bandwidth_gb_s` is 10**9 bytes a second.
    """

    name: str
    aliases: tuple[str, ...]
    vendor: str
    architecture: str
    compute_capability: str
    tier: Tier
    memory_gib: float
    memory_gb_marketed: float
    memory_type: str
    bandwidth_gb_s: float
    fp32_tflops: float | None = None
    tf32_dense: float | None = None
    bf16_dense: float | None = None
    fp16_dense: float | None = None
    fp8_dense: float | None = None
    int8_dense_tops: float | None = None
    fp4_dense: float | None = None
    tdp_w: float | None = None
    interconnect: str = "none"
    pcie: str = ""
    form_factor: str = ""
    needs_server_chassis: bool = False
    release_year: int | None = None
    list_price_usd: float | None = None
    street_price_usd: float | None = None
    price_date: str | None = None
    unverified_fields: tuple[str, ...] = ()
    notes: str = ""
    origin: str = "catalogue"

    @property
    def memory_bytes(self) -> float:
        """Total memory in bytes, as nvidia-smi shows it."""
        return self.memory_gib * GIB

    @property
    def unified_memory(self) -> bool:
        """True where CPU and GPU share one memory (Apple, GB10, Strix Halo, Jetson)."""
        return self.tier == "integrated"

    @property
    def nvlink_gb_s(self) -> float:
        """Bidirectional NVLink (or Infinity Fabric) GB/s of one GPU; 0 where peers talk over PCIe."""
        kind, _, rate = self.interconnect.partition(":")
        if kind not in ("nvlink", "infinity_fabric") or not rate:
            return 0.0
        return float(rate)

    @classmethod
    def from_row(cls, row: Mapping[str, str], origin: str = "catalogue") -> Accelerator:
        """Builds one accelerator from a CSV row; raises `CatalogError` naming the row and what is wrong."""
        name = row.get("name") or "?"
        try:
            return cls(
                name=row["name"],
                aliases=tuple(a for a in row["aliases"].split(";") if a),
                vendor=row["vendor"],
                architecture=row["architecture"],
                compute_capability=row["compute_capability"],
                tier=row["tier"],  # type: ignore[arg-type]
                memory_gib=_positive(row, "memory_gib"),
                memory_gb_marketed=_positive(row, "memory_gb_marketed"),
                memory_type=row["memory_type"],
                bandwidth_gb_s=_positive(row, "bandwidth_gb_s"),
                **{key: _number(row, key) for key in _OPTIONAL_NUMBERS},
                interconnect=row["interconnect"] or "none",
                pcie=row["pcie"],
                form_factor=row["form_factor"],
                needs_server_chassis=row["needs_server_chassis"] == "yes",
                release_year=int(row["release_year"]) if row["release_year"] else None,
                price_date=row["price_date"] or None,
                unverified_fields=tuple(f for f in row["unverified_fields"].split(";") if f),
                notes=row["notes"] or "",
                origin=origin,
            )
        except (KeyError, ValueError, AttributeError, TypeError) as exc:
            raise CatalogError("device_row_invalid", row=name, detail=str(exc)) from exc


_OPTIONAL_NUMBERS = (
    "fp32_tflops tf32_dense bf16_dense fp16_dense fp8_dense int8_dense_tops fp4_dense tdp_w list_price_usd "
    "street_price_usd"
).split()


def _number(row: Mapping[str, str], key: str) -> float | None:
    text = row[key]
    return float(text) if text not in ("", None) else None


def _positive(row: Mapping[str, str], key: str) -> float:
    value = float(row[key])
    if not 0 < value < 1e9:
        raise ValueError(f"{key}={row[key]!r}")
    return value
