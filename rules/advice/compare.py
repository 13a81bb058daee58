"""Set-ups side by side: the same question asked of each alternative, and the figure that decides between them.

Only what is computed decides: whether it fits, how fast it is, how much of it fits, and the facts of the catalogue
(bandwidth, compute rate, number formats). Prices stand beside each.
"""

from __future__ import annotations

from collections.abc import Sequence

from rules.advice.advise import advise
from rules.advice.rent_or_buy import rate_of
from rules.advice.tiers import tier_of
from rules.advice.types import Advice, Limits, Outcome
from rules.catalog.accelerators import Accelerator
from rules.catalog.capabilities import Wants, assess
from rules.catalog.catalogue import Catalogue
from rules.catalog.errors import CatalogError, UnknownName
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Note, Param
from rules.policy import Policy
from rules.records import dataclass
from rules.workload import InferenceWorkload, TrainingWorkload, Workload

_CLEARLY_MORE = 1.1  # a figure that is less than a tenth larger decides nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """One row: the advice on it (None where no law applies, with the reason) and the facts of its device.

    `bandwidth_gb_s` and `bf16_tflops` are of one device, from the catalogue.
    """

    advice: Advice | None
    device: Accelerator | None
    count: int
    problem: Note | None = None
    notes: tuple[Note, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """The verdict on this alternative; unknown where nothing could be computed."""
        return self.advice.outcome if self.advice is not None else "unknown"

    @property
    def runs(self) -> bool:
        """True where it fits, be it tightly."""
        return self.outcome in ("fits", "tight", "cpu")

    @property
    def need_gib(self) -> float | None:
        """GiB a device."""
        return self.advice.options[0].need.expected_gib if self.advice and self.advice.options else None

    @property
    def usable_gib(self) -> float | None:
        """GiB a device that a program can use."""
        return self.advice.options[0].usable_gib if self.advice and self.advice.options else None

    @property
    def limits(self) -> Limits:
        """The most that fits."""
        return self.advice.limits if self.advice is not None else Limits()

    @property
    def tier(self) -> str:
        """Tier of the device, or of what the advice proposes."""
        if self.device is not None:
            return tier_of(self.device)
        return self.advice.options[0].tier if self.advice and self.advice.options else "cpu"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The rows in the order asked. `winner` is the index of the one to take, which `verdict` names as `side`."""

    rows: tuple[Alternative, ...]
    verdict: Note
    winner: int | None


def compare(workloads: Sequence[Workload], catalogue: Catalogue, policy: Policy) -> Comparison:
    """Judges each workload on its own hardware and names the figure that decides between them.

    An alternative that no law covers, or whose name nothing resembles, keeps its row with the reason.
    """
    rows = tuple(_row(workload, catalogue, policy) for workload in workloads)
    verdict, winner = _decide(rows, isinstance(workloads[0], TrainingWorkload))
    return Comparison(rows, verdict, winner)


def _row(workload: Workload, catalogue: Catalogue, policy: Policy) -> Alternative:
    device: Accelerator | None = None
    count = 1
    if workload.hardware:
        first = workload.hardware[0]
        count = first.count
        try:
            device = catalogue.find_accelerator(first.name, first.memory_gib)
        except UnknownName:
            device = None  # a CPU, or a name that the advice below refuses
    try:
        advice = advise(workload, catalogue, policy)
    except (CatalogError, UnsupportedWorkload) as error:
        problem = Note(error.message_id, {k: v for k, v in error.params.items() if isinstance(v, (str, int, float))})
        return Alternative(advice=None, device=device, count=count, problem=problem)
    return Alternative(advice=advice, device=device, count=count, notes=_findings(workload, device))


def _findings(workload: Workload, device: Accelerator | None) -> tuple[Note, ...]:
    if device is None:
        return ()
    training = isinstance(workload, TrainingWorkload)
    fmt = workload.weights_format.value if isinstance(workload, InferenceWorkload) and workload.weights_format else None
    wants = Wants(
        compute_dtype="bf16" if training else None, weights_format=fmt, flash_attention=training, training=training
    )
    return tuple(Note(f.message, f.params, f.requirement) for f in assess(device, wants))


def _decide(rows: Sequence[Alternative], training: bool) -> tuple[Note, int | None]:
    running = [i for i, row in enumerate(rows) if row.runs]
    if not running:
        known = [i for i, row in enumerate(rows) if row.need_gib is not None]
        if not known:
            return Note("compare_none_known"), None
        nearest = min(known, key=lambda i: _short_gib(rows[i]))
        return Note("compare_none_fits", {"side": nearest, "short_gib": _short_gib(rows[nearest])}), None
    if len(running) == 1:
        only = running[0]
        return Note("compare_only_one_fits", _need(rows[only], only)), only
    easy = [i for i in running if rows[i].outcome != "tight"]
    if len(easy) == 1:
        return Note("compare_one_has_room", _need(rows[easy[0]], easy[0])), easy[0]
    return _by_figures([*easy] or running, rows, training)


def _by_figures(among: Sequence[int], rows: Sequence[Alternative], training: bool) -> tuple[Note, int | None]:
    """All fit. Between machines the speed decides, where a law gives it (else the compute rate of training, the memory
    bandwidth of serving), then the room for more; between models or formats on one machine, the memory."""
    machines = {(row.device.name, row.count) for i in among if (row := rows[i]).device is not None}
    if len(machines) < 2:
        return _least_memory(among, rows)
    computed = {i: rate_of(found.options[0]) for i in among if (found := rows[i].advice) and found.options}
    known = len(computed) == len(among) and all(computed.values())
    rates = {i: (computed[i] or 0.0) if known else _rate(rows[i], training) for i in among}
    best, second = sorted(rates, key=lambda i: -rates[i])[:2]
    if rates[second] and rates[best] >= _CLEARLY_MORE * rates[second]:
        message = "compare_compute" if training else "compare_bandwidth"
        if known:
            message = "compare_speed_training" if training else "compare_speed_serving"
        return Note(message, {"side": best, "rate": rates[best], "other_rate": rates[second]}), best
    quick = [i for i in among if rates[i] * _CLEARLY_MORE > rates[best]]
    room = {i: (rows[i].limits.micro_batch if training else rows[i].limits.sequences) or 0 for i in quick}
    best, second = sorted(room, key=lambda i: -room[i])[:2] if len(room) > 1 else (best, best)
    if room[second] and room[best] >= _CLEARLY_MORE * room[second]:
        message = "compare_room_training" if training else "compare_room_serving"
        return Note(message, {"side": best, "most": room[best], "other_most": room[second]}), best
    return Note("compare_alike"), None


def _rate(row: Alternative, training: bool) -> float:
    """TFLOPS in bf16 of all devices, or GB/s of the devices that read at the same time: those of tensor parallel."""
    if row.device is None:
        return 0.0
    if training:
        return (row.device.bf16_dense or 0.0) * row.count
    plan = row.advice.options[0].parallelism if row.advice and row.advice.options else None
    together = plan.params.get("tp", 1) if plan is not None else 1
    return row.device.bandwidth_gb_s * (together if isinstance(together, int) else 1)


def _least_memory(among: Sequence[int], rows: Sequence[Alternative]) -> tuple[Note, int | None]:
    need = {i: rows[i].need_gib or 0.0 for i in among}
    least, most = min(need, key=lambda i: need[i]), max(need, key=lambda i: need[i])
    if need[most] >= _CLEARLY_MORE * need[least]:
        return Note("compare_least_memory", {"side": least, "need_gib": need[least], "other_gib": need[most]}), least
    return Note("compare_alike"), None


def _need(row: Alternative, side: int) -> dict[str, Param]:
    return {"side": side, "need_gib": row.need_gib or 0.0, "usable_gib": row.usable_gib or 0.0}


def _short_gib(row: Alternative) -> float:
    return (row.need_gib or 0.0) - (row.usable_gib or 0.0)
