"""What a question says of clouds, ways to pay, and of what decides; and that it reaches the workload."""

from __future__ import annotations

from typing import Any

import pytest

from bot.questions.parse import parse
from bot.questions.workload import to_workload
from rules.catalog.catalogue import Catalogue

CATALOGUE = Catalogue.load()


@pytest.mark.parametrize(
    ("text", "field", "expected"),
    [
        ("serve a 13b in aws", "providers", ("aws",)),
        ("which EC2 for mixtral", "providers", ("aws",)),
        ("llama 3 8b, only aws or gcp", "providers", ("aws", "gcp")),
        ("llama 3 8b en google cloud", "providers", ("gcp",)),
        ("serve a 13b", "providers", ()),
        ("serve a 13b on spot instances", "purchase", "spot"),
        ("sirve un 13b con instancias reservadas", "purchase", "reserved"),
        ("cheapest gpu for llama 3 8b", "goal", "cheapest"),
        ("lo más barato para un llama 3 8b", "goal", "cheapest"),
        ("fastest card for llama 3 8b", "goal", "fastest"),
        ("what gpu for llama 3 8b", "goal", None),
    ],
)
def test_the_market_of_a_question(text: str, field: str, expected: Any) -> None:
    """Clouds by the names that people write, ways to pay and goals stand in the workload's constraints."""
    workload = to_workload(parse(text, CATALOGUE), CATALOGUE)
    assert workload is not None
    assert getattr(workload.constraints, field) == expected


@pytest.mark.parametrize(
    ("text", "field", "expected"),
    [
        ("qlora on 8b, 20h a week for a year", "months", 12),
        ("a 7b q4 at 20 tok/s", "tokens_per_s_per_user", 20),
        ("llama 3 8b 24/7 en la nube", "hours_per_week", 168),
    ],
)
def test_the_use_of_a_question(text: str, field: str, expected: float) -> None:
    """Months, hours and reading speed stand in the workload's traffic."""
    workload = to_workload(parse(text, CATALOGUE), CATALOGUE)
    assert workload is not None
    assert getattr(workload.traffic, field) == expected


def test_the_price_of_electricity_keeps_its_currency() -> None:
    """0.30 EUR a kWh is not 0.30 USD."""
    workload = to_workload(parse("qlora 8b on a 3090 24/7 at 0.30 eur/kWh", CATALOGUE), CATALOGUE)
    assert workload is not None
    price = workload.constraints.kwh_price
    assert price is not None
    assert (price.amount, price.currency, price.per) == ("0.3", "EUR", "kwh")


@pytest.mark.parametrize("text", ["llama 3 8b on 8 GPUs", "llama 3 8b en 8 tarjetas", "lora of a 8b with 8 cards"])
def test_a_number_of_cards_without_their_kind_is_kept(text: str) -> None:
    """The count reaches the workload's constraints where no card is named."""
    workload = to_workload(parse(text, CATALOGUE), CATALOGUE)
    assert workload is not None
    assert workload.constraints.devices == 8
