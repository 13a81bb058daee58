"""Counts the bytes of live tensor storages while code runs, as a caching GPU allocator would hand them out.

A `StorageCounter` is a torch dispatch mode: it sees the outputs of every operator, counts each storage once, rounded
up to the allocator's 512 B, and subtracts it when the last tensor that uses it is gone. Under `FakeTensorMode` nothing
is allocated or computed, so a step of a 70B model is counted in seconds. What a kernel allocates inside itself is
invisible to a dispatch mode: `workspace_bytes` says what CUDA's kernels take, from their sources, and the counter adds
it to the peak for the duration of the operator.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

ALLOCATION_GRANULE_BYTES = 512
"""CUDA's caching allocator rounds every request up to a multiple of this."""


def rounded_bytes(size_bytes: int) -> int:
    """The bytes that the allocator hands out for a request of `size_bytes`."""
    return -(-size_bytes // ALLOCATION_GRANULE_BYTES) * ALLOCATION_GRANULE_BYTES


class StorageCounter(TorchDispatchMode):  # type: ignore[misc]
    """Live and peak bytes, the peak by phase. Enter it inside a `FakeTensorMode` (or without, on real CPU tensors)."""

    def __init__(self, workspace: Callable[[Any, tuple[Any, ...], Any], int] | None = None) -> None:
        super().__init__()
        self.live_bytes = 0
        self.peak_by_phase: dict[str, int] = {}
        self.ignore_scalars = False
        self._workspace = workspace
        self._phase: str | None = None
        self._seen: set[int] = set()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Everything inside belongs to phase `name`; entered again, the higher peak stays."""
        previous, self._phase = self._phase, name
        self._note(self.live_bytes)
        try:
            yield
        finally:
            self._phase = previous

    @property
    def peak_bytes(self) -> int:
        """The highest of all phases."""
        return max(self.peak_by_phase.values(), default=self.live_bytes)

    def count(self, tensor: torch.Tensor) -> None:
        """Counts the storage of one tensor, if it is not counted already, until it is freed."""
        if tensor.device.type == "meta" or (self.ignore_scalars and tensor.dim() == 0):
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._seen:
            return
        size = rounded_bytes(storage.nbytes())
        self._seen.add(key)
        self.live_bytes += size
        weakref.finalize(storage, self._forget, key, size)
        self._note(self.live_bytes)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if func.namespace == "prim":
            return out
        for leaf in tree_leaves(out):
            if isinstance(leaf, torch.Tensor):
                self.count(leaf)
        if self._workspace is not None:
            extra = self._workspace(func, args, out)
            if extra:
                self._note(self.live_bytes + extra)
        return out

    def _note(self, size_bytes: int) -> None:
        phase = self._phase
        if phase is not None and size_bytes > self.peak_by_phase.get(phase, 0):
            self.peak_by_phase[phase] = size_bytes

    def _forget(self, key: int, size: int) -> None:
        self._seen.discard(key)
        self.live_bytes -= size
