"""The counter of live storages and the corrections from CPU to CUDA behaviour."""

from __future__ import annotations

import gc

import pytest

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from bench_agent.cuda_behaviour import CudaBehaviour, workspace_bytes  # noqa: E402
from bench_agent.storage_counter import StorageCounter, rounded_bytes  # noqa: E402

pytestmark = pytest.mark.torch


def test_requests_are_rounded_up_to_the_allocator_granule() -> None:
    """One byte takes 512, 512 take 512 and 513 take 1,024."""
    assert [rounded_bytes(n) for n in (0, 1, 512, 513)] == [0, 512, 512, 1024]


def test_a_storage_is_counted_once_and_until_its_last_view_is_gone() -> None:
    """A view adds nothing, and keeps the storage counted after its base is gone."""
    with FakeTensorMode(), StorageCounter() as counter:
        base = torch.empty(1000, dtype=torch.float32)
        view = base.view(10, 100)[2:]
        assert counter.live_bytes == rounded_bytes(4000)
        del base
        assert counter.live_bytes == rounded_bytes(4000)
        del view
        gc.collect()
        assert counter.live_bytes == 0


def test_the_peak_of_a_phase_is_its_highest_moment() -> None:
    """Temporaries of a phase are in its peak, what lives across phases is in both, what came later is not."""
    with FakeTensorMode(), StorageCounter() as counter:
        with counter.phase("first"):
            kept = torch.empty(1024, dtype=torch.uint8)
            torch.empty(4096, dtype=torch.uint8)
        with counter.phase("second"):
            torch.empty(2048, dtype=torch.uint8)
        assert counter.peak_by_phase == {"first": 5120, "second": 3072}
        assert counter.peak_bytes == 5120
        assert kept.numel() == 1024


def test_nothing_is_allocated_for_a_fake_tensor() -> None:
    """A petabyte is counted in full and takes no memory."""
    with FakeTensorMode(), StorageCounter() as counter:
        huge = torch.empty(2**50, dtype=torch.uint8)
        assert counter.live_bytes == 2**50 == huge.numel()


def test_saved_tensors_live_until_the_backward_pass_is_done() -> None:
    """Autograd's saved input is counted although no name holds it."""
    with FakeTensorMode(), StorageCounter() as counter:
        weight = torch.empty(256, 256, requires_grad=True)
        loss = (torch.empty(256, 256).exp() @ weight).sum()
        held = counter.live_bytes
        assert held >= 2 * 4 * 256 * 256
        loss.backward()
        del loss
        gc.collect()
        assert counter.live_bytes == 2 * 4 * 256 * 256  # the weight and its gradient


def test_the_counter_agrees_with_torchs_own_memory_tracker() -> None:
    """On a full fine-tuning step the peak equals `MemTracker`'s to one per cent."""
    from torch.distributed._tools.mem_tracker import MemTracker

    def step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, tracker: MemTracker | None = None) -> None:
        for _ in range(2):
            if tracker is not None:
                tracker.reset_mod_stats()
            model(torch.empty(64, 256)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def made() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
        layers = [torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.LayerNorm(1024), torch.nn.Linear(1024, 256)]
        model = torch.nn.Sequential(*layers)
        return model, torch.optim.AdamW(model.parameters(), foreach=True)

    with FakeTensorMode():
        with StorageCounter() as counter:
            model, optimizer = made()
            with counter.phase("step"):
                step(model, optimizer)
        model, optimizer = made()
        tracker = MemTracker()
        tracker.track_external(model, optimizer)
        with tracker:
            step(model, optimizer, tracker)
        (peaks,) = tracker.get_tracker_snapshot("peak").values()
        assert counter.peak_bytes == pytest.approx(peaks["Total"], rel=0.01)


def test_dropout_keeps_a_mask_of_one_byte_a_value() -> None:
    """CUDA's dropout saves a boolean mask; the CPU's saves noise as wide as its input."""
    held = {}
    for name, mode in (("cuda", CudaBehaviour()), ("cpu", None)):
        with FakeTensorMode(), StorageCounter() as counter:
            values = torch.empty(1 << 20, dtype=torch.float32, requires_grad=True)
            if mode is None:
                kept = torch.nn.functional.dropout(values, 0.1, True)
            else:
                with mode:
                    kept = torch.nn.functional.dropout(values, 0.1, True)
            held[name] = counter.live_bytes - 2 * 4 * kept.numel()
    assert held == {"cuda": 1 << 20, "cpu": 4 << 20}


def test_autocast_runs_layer_norm_and_softmax_in_float32() -> None:
    """CUDA's cast policy returns float32 where the CPU's returns bf16; products stay in bf16."""
    with FakeTensorMode(), CudaBehaviour(), torch.autocast("cpu", dtype=torch.bfloat16):
        product = torch.empty(8, 8) @ torch.empty(8, 8)
        assert product.dtype is torch.bfloat16
        assert torch.nn.functional.layer_norm(product, (8,)).dtype is torch.float32
        assert product.softmax(-1).dtype is torch.float32


def test_dropout_inside_fused_attention_stays_linear_in_length() -> None:
    """With dropout the fused kernel is still used: no score matrix is kept."""
    with FakeTensorMode(), StorageCounter() as counter, CudaBehaviour():
        q = torch.empty(1, 8, 4096, 64, dtype=torch.bfloat16, requires_grad=True)
        out = torch.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=0.1, is_causal=True)
        assert counter.live_bytes < 3 * 2 * out.numel()


@pytest.mark.parametrize(
    ("key_heads", "dtype", "expected"),
    [
        (8, torch.bfloat16, 4 * 8 * 128 + 4 * 8 * 128 * 96),
        (2, torch.bfloat16, 4 * 8 * 128 + 4 * 8 * 128 * 96 + 2 * 2 * 8 * 100 * 80),
        (8, torch.float32, 4 * 8 * 128),
    ],
)
def test_attention_backward_workspace(key_heads: int, dtype: torch.dtype, expected: int) -> None:
    """Length rounds to 128 and head width 80 to 96; grouped heads add both expanded gradients; fp32 only row sums."""
    seen: list[int] = []

    def workspace(func: object, args: tuple[object, ...], out: object) -> int:
        size = workspace_bytes(func, args, out)
        seen.append(size)
        return size

    with FakeTensorMode(), StorageCounter(workspace):
        q = torch.empty(1, 8, 100, 80, dtype=dtype, requires_grad=True)
        k = torch.empty(1, key_heads, 100, 80, dtype=dtype, requires_grad=True)
        grouped = key_heads != 8
        torch.nn.functional.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=grouped).sum().backward()
    assert max(seen) == expected


def test_softmax_of_fp16_scores_makes_no_float32_copy_of_them() -> None:
    """CUDA's kernel widens inside: beside the fp16 scores only the float32 result is held."""
    with FakeTensorMode(), StorageCounter() as counter, CudaBehaviour():
        scores = torch.empty(1 << 18, dtype=torch.float16, requires_grad=True)
        with counter.phase("forward"):
            out = torch.nn.functional.softmax(scores, dim=-1, dtype=torch.float32)
        assert out.dtype is torch.float32
        assert counter.peak_by_phase["forward"] == (2 + 4) * (1 << 18)


def test_softmax_backward_multiplies_into_a_tensor_of_its_own() -> None:
    """CUDA's softmax backward holds gradient times output beside its result."""
    with FakeTensorMode(), StorageCounter(workspace_bytes) as counter:
        scores = torch.empty(1 << 18, dtype=torch.float32, requires_grad=True)
        out = torch.softmax(scores, 0)
        gradient = torch.empty_like(out)
        with counter.phase("backward"):
            out.backward(gradient)
        assert counter.peak_by_phase["backward"] == 5 * 4 * (1 << 18)
