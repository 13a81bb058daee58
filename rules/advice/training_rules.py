"""Rules about training hardware (T1-T7)."""

from __future__ import annotations

from rules.advice.registry import Facts, Found, rule
from rules.memory.footprint import Note, Param
from rules.units import to_gib
from rules.workload import TrainingWorkload

_SMALL_TIERS = ("consumer", "workstation")
_ADAPTERS = ("lora", "qlora", "dora")


def _training(facts: Facts) -> TrainingWorkload | None:
    return facts.workload if isinstance(facts.workload, TrainingWorkload) else None


@rule("training.card_lacks_memory", "T1")
def card_lacks_memory(facts: Facts) -> Found | None:
    """A card that cannot hold the run is named as lacking memory, with the figures."""
    if _training(facts) is None or facts.judged is None or facts.judged.fits or facts.device is None:
        return None
    fit = facts.judged.fit
    params: dict[str, Param] = {"device": facts.device.name, "short_gib": to_gib(-fit.headroom_bytes)}
    return Found(Note("rule_card_lacks_memory", params), {"need_gib": to_gib(fit.need.expected)})


@rule("training.parameters_exceed_card", "T3")
def parameters_exceed_card(facts: Facts) -> Found | None:
    """Where the states exceed one card, the parallelism and its degree are named."""
    if _training(facts) is None or facts.judged is None or facts.count < 2 or facts.device is None:
        return None
    return Found(
        Note("rule_parallelism", {"plan": facts.judged.placed.plan, "device": facts.device.name}),
        {"nvlink_gb_s": facts.device.nvlink_gb_s},
    )


@rule("training.micro_batch", "T6")
def micro_batch(facts: Facts) -> Found | None:
    """The largest micro-batch that fits and the way round it (gradient accumulation)."""
    largest = facts.limits.micro_batch
    if _training(facts) is None or largest is None:
        return None
    return Found(Note("rule_largest_micro_batch", {"micro_batch": largest}))


@rule("training.qlora_on_small_cards", "T7")
def qlora_on_small_cards(facts: Facts) -> Found | None:
    """A small model with QLoRA belongs on a workstation or consumer card."""
    workload = _training(facts)
    if workload is None or workload.method is None or workload.method.value != "qlora":
        return None
    unnamed = facts.device.name if facts.device is not None and facts.device.origin == "generic" else None
    small = [o for o in facts.options if o.tier in _SMALL_TIERS and o.count == 1 and o.hardware != unnamed]
    if not small:
        return None
    return Found(Note("rule_qlora_small_cards", {"device": small[0].hardware}), {"params_b": facts.model.params_b})


@rule("training.full_needs_states", "T2")
def full_needs_states(facts: Facts) -> Found | None:
    """Full fine-tuning needs several times the weights: say so beside the quick rule."""
    workload = _training(facts)
    if workload is None or workload.method is None or workload.method.value in _ADAPTERS or facts.quick_rule is None:
        return None
    ratio = facts.quick_rule.real_gib / facts.quick_rule.gib if facts.quick_rule.gib else 0.0
    if ratio < 1.5:
        return None
    return Found(Note("rule_full_needs_states", {"ratio": ratio}), {"quick_gib": facts.quick_rule.gib})
