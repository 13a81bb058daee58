"""Names in a question that the catalogue does not hold: said as problems, with near names or what is used instead."""

from __future__ import annotations

import re
from typing import Protocol

from bot.questions.reader import Reader
from rules.catalog.accelerators import Accelerator
from rules.catalog.cpus import Cpu
from rules.catalog.errors import UnknownName

_WRITTEN_MEMORY = re.compile(r"(\d+)GB$")


class FindsDevices(Protocol):
    """The part of the catalogue that resolves devices."""

    def find_accelerator(self, name: str, memory_gib: float | None = None) -> Accelerator:
        """Raises `UnknownName`."""
        ...

    def find_cpu(self, name: str) -> Cpu:
        """Raises `UnknownName`."""
        ...


def written_memory_gb(name: str) -> float | None:
    """The memory that is part of a normalised device name (A800-80GB), in GB."""
    found = _WRITTEN_MEMORY.search(name)
    return float(found.group(1)) if found else None


def check_devices(reader: Reader, catalogue: FindsDevices) -> None:
    """Notes each stated device that the catalogue does not hold."""
    for item in reader.fields.get("hardware", ()):
        name = item["name"]
        try:
            if reader.fields.get("cpu_only"):
                catalogue.find_cpu(name)
            else:
                catalogue.find_accelerator(name)
        except UnknownName as unknown:
            memory = reader.fields.get("gpu_mem_gb") or written_memory_gb(name)
            if reader.fields.get("cpu_only"):
                reader.problem("unknown_cpu", None, name=name, suggestions=", ".join(unknown.suggestions))
            elif memory:
                reader.problem("unknown_device_memory_used", None, name=name, memory_gb=memory)
