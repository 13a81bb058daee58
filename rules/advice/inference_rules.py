"""Rules about serving hardware (T1, T4, I1-I3, I9)."""

from __future__ import annotations

from rules.advice.registry import Facts, Found, rule
from rules.memory.footprint import Note
from rules.workload import InferenceWorkload


def _inference(facts: Facts) -> InferenceWorkload | None:
    return facts.workload if isinstance(facts.workload, InferenceWorkload) else None


@rule("inference.cpu_serves_it", "I1")
def cpu_serves_it(facts: Facts) -> Found | None:
    """A small model at low traffic is offered a CPU."""
    cpu = next((o for o in facts.options if o.kind == "cpu"), None)
    if _inference(facts) is None or cpu is None:
        return None
    return Found(Note("rule_cpu_serves_it", {"cpu": cpu.hardware}), {"active_b": facts.model.params_active / 1e9})


@rule("inference.cpu_concurrency", "I2")
def cpu_concurrency(facts: Facts) -> Found | None:
    """High concurrency rules the CPU out, with the limit."""
    workload = _inference(facts)
    if workload is None or workload.concurrency is None or facts.device is not None:
        return None
    most = facts.policy.cpu.max_concurrency
    if workload.concurrency.value <= most:
        return None
    return Found(Note("rule_cpu_concurrency", {"sequences": workload.concurrency.value, "most": most}))


@rule("inference.decode_reads_weights", "T4")
def decode_reads_weights(facts: Facts) -> Found | None:
    """Decoding one sequence is bound by memory bandwidth: the weights that each token reads are named."""
    workload = _inference(facts)
    if workload is None or facts.model.domain != "llm" or facts.judged is None or facts.device is None:
        return None
    if workload.concurrency is not None and workload.concurrency.value > 4:
        return None
    if facts.device.origin == "generic":  # known by its memory alone: its bandwidth is a guess
        return None
    return Found(
        Note("rule_decode_bandwidth", {"device": facts.device.name, "rate_gb_s": facts.device.bandwidth_gb_s}),
        {"active_b": facts.model.params_active / 1e9},
    )


@rule("inference.moe_all_resident", "T3")
def moe_all_resident(facts: Facts) -> Found | None:
    """All experts must be resident although few are active."""
    if _inference(facts) is None or facts.model.moe is None:
        return None
    params = {"total_b": facts.model.params_b, "active_b": facts.model.params_active / 1e9}
    return Found(Note("rule_moe_all_resident", params))
