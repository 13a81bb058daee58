"""The three tiers of hardware (T5) and what each asks of its owner."""

from __future__ import annotations

from rules.catalog.accelerators import Accelerator
from rules.catalog.capabilities import Wants, assess
from rules.memory.footprint import Note
from rules.policy import Policy

_NAMES = {
    "datacenter": "enterprise",
    "cloud_only": "enterprise",
    "workstation": "workstation",
    "consumer": "consumer",
    "integrated": "workstation",
}


def tier_of(device: Accelerator) -> str:
    """`enterprise`, `workstation` or `consumer`; a unified-memory box counts as a workstation."""
    return _NAMES[device.tier]


def considerations(device: Accelerator, count: int, policy: Policy) -> tuple[Note, ...]:
    """What an owner must know about placing `count` of this device: rack, circuit, support (T5)."""
    office = Wants(
        office=True, count=count, circuit_watts=policy.office.circuit_watts, host_watts=policy.office.host_watts
    )
    found = [f for f in assess(device, office) if f.requirement == "T5"]
    if device.needs_server_chassis:  # what an office circuit gives is beside the point in a rack
        found = found[:1]
    notes = [Note(f.message, f.params, f.requirement) for f in found]
    if tier_of(device) == "consumer" and device.origin != "generic":  # of a bare size nobody knows the kind
        notes.append(Note("tier_consumer_no_support", {"device": device.name}, "T5"))
    return tuple(notes)
