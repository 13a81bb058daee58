"""Machines in the figures that decide speed: memory bandwidth, arithmetic peaks, the link between peers.

Rates are bytes a second and operations a second of one device. A figure that the catalogue lacks stays None and the
law that needs it refuses, except where it follows from another by the hardware's own arithmetic (said below).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from rules.catalog.accelerators import Accelerator
from rules.catalog.cpus import Cpu
from rules.memory.errors import UnsupportedWorkload
from rules.records import dataclass

MemoryClass = Literal["hbm", "gddr", "unified", "cpu"]

_PCIE_GB_S_A_LANE = {"1.0": 0.25, "3.0": 0.985, "4.0": 1.969, "5.0": 3.938, "6.0": 7.563}
_APPLE_HALF_RATE = 1.0  # Apple GPUs run 16-bit products at the fp32 rate
_PACKED_HALF = 2.0  # GPUs without matrix units run packed 16-bit products at twice the fp32 rate
# fp32 operations a cycle and core: two FMA units of 256 or 512 bits (Intel and AMD optimisation manuals).
_CPU_OPS_A_CYCLE = {"avx2": 32.0, "avx512": 64.0}
_AMX_OPS_A_CYCLE = 1024.0  # bf16, one tile unit (Intel AMX architecture specification)
_SUSTAINED_CLOCK_SHARE = 0.8  # of boost with all cores busy; base clock where it is higher


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One device. `peaks` maps bits of the operands (32, 16, 8, 4) to operations a second; `link` is bytes a second.

    `link` is what one device sends to its peers: half of the bidirectional NVLink figure, or the PCIe slot.
    """

    name: str
    memory: MemoryClass
    vendor: str
    bandwidth: float
    fp32: float
    peaks: dict[int, float]
    link: float
    nvlink: bool
    cores: int = 0
    features: str = ""

    def peak(self, bits: int) -> float:
        """Operations a second for operands of `bits`, or of the next wider type that the device has."""
        for width in (4, 8, 16, 32):
            if width >= bits and self.peaks.get(width):
                return self.peaks[width]
        raise UnsupportedWorkload("speed_peak_unknown", device=self.name)


@lru_cache(maxsize=1024)
def _accelerator(device: Accelerator) -> Machine:
    if not device.bandwidth_gb_s:
        raise UnsupportedWorkload("speed_bandwidth_unknown", device=device.name)
    fp32 = (device.fp32_tflops or 0.0) * 1e12
    half = (device.bf16_dense or device.fp16_dense or 0.0) * 1e12
    if not half:
        half = fp32 * (_APPLE_HALF_RATE if device.vendor == "apple" else _PACKED_HALF)
    if not half:
        raise UnsupportedWorkload("speed_peak_unknown", device=device.name)
    peaks = {32: fp32, 16: half}
    if device.fp8_dense or device.int8_dense_tops:
        peaks[8] = (device.fp8_dense or device.int8_dense_tops or 0.0) * 1e12
    if device.fp4_dense:
        peaks[4] = device.fp4_dense * 1e12
    return Machine(
        name=device.name,
        memory=_memory_class(device),
        vendor=device.vendor,
        bandwidth=device.bandwidth_gb_s * 1e9,
        fp32=fp32 or half / 2,
        peaks=peaks,
        link=device.nvlink_gb_s / 2 * 1e9 or _pcie(device.pcie),
        nvlink=device.nvlink_gb_s > 0,
    )


def _memory_class(device: Accelerator) -> MemoryClass:
    if device.unified_memory:
        return "unified"
    return "hbm" if "HBM" in device.memory_type.upper() else "gddr"


def _pcie(slot: str) -> float:
    """Bytes a second one way of a slot written "4.0 x16"; 16 lanes of generation 3 where nothing is known."""
    generation, _, lanes = slot.partition(" x")
    rate = _PCIE_GB_S_A_LANE.get(generation.strip(), _PCIE_GB_S_A_LANE["3.0"])
    return rate * (int(lanes) if lanes.strip().isdigit() else 16) * 1e9


def machine_of(device: Accelerator | Cpu, sockets: int = 1, threads: int | None = None) -> Machine:
    """The machine of a catalogue row; `sockets` CPUs count as one. Raises `UnsupportedWorkload` for an unknown rate."""
    if isinstance(device, Accelerator):
        return _accelerator(device)
    if not device.bandwidth_gb_s:
        raise UnsupportedWorkload("speed_bandwidth_unknown", device=device.name)
    cores = (min(threads, device.cores) if threads else device.cores) * sockets
    clock = max(device.base_ghz or 0.0, (device.boost_ghz or 0.0) * _SUSTAINED_CLOCK_SHARE) * 1e9
    if not clock:
        raise UnsupportedWorkload("speed_peak_unknown", device=device.name)
    fp32 = cores * clock * _CPU_OPS_A_CYCLE["avx512" if device.avx512 else "avx2"]
    half = cores * clock * _AMX_OPS_A_CYCLE if device.amx else fp32 * (2.0 if device.avx512_bf16 else 1.0)
    eight = fp32 * (4.0 if device.avx512_vnni else 2.0 if device.avx_vnni else 1.0)
    return Machine(
        name=device.name,
        memory="cpu",
        vendor=device.vendor,
        bandwidth=device.bandwidth_gb_s * 1e9 * sockets,
        fp32=fp32,
        peaks={32: fp32, 16: half, 8: max(half * 2 if device.amx else 0.0, eight)},
        link=0.0,
        nvlink=False,
        cores=cores,
        features="amx" if device.amx else "avx512" if device.avx512 else "avx2",
    )
