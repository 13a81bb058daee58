"""What a question says of the market: the only clouds it allows, how it would pay, and what decides between options."""

from __future__ import annotations

from bot.questions.lexicon import choices, cue
from bot.questions.reader import Reader

_GOALS = ("cheapest", "fastest")
_MOST_CLOUDS = 5  # whoever names more is comparing, not limiting


def read_market(reader: Reader) -> None:
    """Fills the extras `providers` (a list), `purchase` and `goal`; a named cloud means the cloud."""
    named = [(hit, name) for name, pattern in choices("providers") if (hit := reader.search(pattern))]
    if named and len({name for _, name in named}) <= _MOST_CLOUDS:
        reader.give_extra("providers", [name for _, name in named], named[0][0])
        reader.fields.setdefault("location", "cloud")
    for name, pattern in choices("purchases"):
        if hit := reader.search(pattern):
            reader.give_extra("purchase", name, hit)
            break
    goals = [goal for goal in _GOALS if reader.has(cue("goals", goal))]
    if len(goals) == 1:
        reader.extra["goal"] = goals[0]
