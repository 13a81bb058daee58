"""Rented machines: whole instances, places, providers, ways to pay."""

from __future__ import annotations

from decimal import Decimal
from math import ceil
from time import perf_counter

import pytest

from rules.catalog.catalogue import Catalogue
from rules.cost.regions import satisfies
from rules.cost.rentals import RentalWants, cpu_quotes, rental_quotes
from rules.policy import default_policy

POLICY = default_policy()
EMPTY = dict.fromkeys(
    "provider instance region gpu n_gpus gpu_memory_gb_each vcpus ram_gib on_demand_usd_h spot_usd_h on_demand_eur_h "
    "reserved_1y_usd_h reserved_3y_usd_h billing cpu cpu_flags price_date spot_date source notes".split(),
    "",
)


def row(**cells: str) -> dict[str, str]:
    """A team's offer."""
    return {**EMPTY, "provider": "own", "region": "any", "gpu": "L4", "n_gpus": "1", **cells}


def test_cheapest_l4_is_the_published_one() -> None:
    """One L4 costs 0.44 an hour at its cheapest provider, on demand."""
    first = rental_quotes(Catalogue.load(), "L4", 1, policy=POLICY)[0]
    assert (first.provider, first.usd_per_hour, first.purchase) == ("jarvis-labs", Decimal("0.44"), "on_demand")


def test_whole_instances_are_paid() -> None:
    """Three devices out of instances of eight cost one whole instance, out of instances of two cost two."""
    team = Catalogue.load().with_overrides(
        offers=[
            row(instance="eight", n_gpus="8", on_demand_usd_h="8"),
            row(instance="two", n_gpus="2", on_demand_usd_h="3"),
        ]
    )
    quotes = rental_quotes(team, "L4", 3, RentalWants(providers=("own",)), policy=POLICY)
    assert [(q.instance, q.instances, q.devices, q.usd_per_hour) for q in quotes] == [
        ("two", 2, 4, Decimal(6)),
        ("eight", 1, 8, Decimal(8)),
    ]
    assert quotes[0].notes[0].message == "cost_several_instances"
    one = rental_quotes(team, "L4", 3, RentalWants(providers=("own",), one_machine=True), policy=POLICY)
    assert [q.instance for q in one] == ["eight"]


@pytest.mark.parametrize(
    ("region", "location", "inside"),
    [
        ("any", "eu", False), ("any", "any", False), ("any", None, True), ("eu-north1", "eu", True),
        ("eu-north1", "fi", True), ("eu-north1", "de", False), ("us-east-1", "us", True), ("us-east-1", "eu", False),
        ("us-east-1", "us-east-1", True), ("eu", "eu", True), ("eu", "de", False), ("eu-west-2", "eu", False),
        ("eu-west-2", "UK", True), ("mars-1", "eu", False), ("eastus", "USA", True),
    ],
)  # fmt: skip
def test_places(region: str, location: str | None, inside: bool) -> None:
    """A region lies in its union, its country and itself; `any` lies nowhere."""
    assert satisfies(region, location) is inside


def test_location_leaves_only_that_place() -> None:
    """A wish for the EU leaves offers with an EU region and no offer without a place."""
    quotes = rental_quotes(Catalogue.load(), "H100 80GB SXM5", 8, RentalWants(location="eu"), policy=POLICY)
    assert [(q.provider, q.instance, q.usd_per_hour) for q in quotes[:1]] == [
        ("nebius", "gpu-h100-sxm_1gpu-16vcpu-200gb", Decimal("23.60"))
    ]
    assert {q.region for q in quotes} == {"eu-north1"}


def test_unknown_reserved_prices_stay_unknown() -> None:
    """Reserved capacity gives no quote where no reserved price is known, and the known one where a team has it."""
    wants = RentalWants(purchase="reserved")
    assert rental_quotes(Catalogue.load(), "L4", 1, wants, policy=POLICY) == ()
    team = Catalogue.load().with_overrides(
        offers=[row(instance="r", on_demand_usd_h="2", reserved_1y_usd_h="1.5", reserved_3y_usd_h="1.1")]
    )
    quotes = rental_quotes(team, "L4", 1, wants, policy=POLICY)
    assert [(q.purchase, q.usd_per_hour) for q in quotes] == [
        ("reserved_3y", Decimal("1.1")),
        ("reserved_1y", Decimal("1.5")),
    ]


def test_spot_prices_carry_their_own_date() -> None:
    """A spot quote of AWS has the spot price's date, not the list price's."""
    wants = RentalWants(purchase="spot", providers=("AWS",))
    first = rental_quotes(Catalogue.load(), "L4", 1, wants, policy=POLICY)[0]
    assert (first.instance, first.usd_per_hour) == ("g6.4xlarge", Decimal("0.6637"))
    assert first.price_date is not None
    assert first.price_date.isoformat()[:7] == "2026-03"


def test_prices_in_euro_are_converted_and_say_so() -> None:
    """A price of 1 EUR an hour is 1.1172 USD at the dated rate."""
    team = Catalogue.load().with_overrides(offers=[row(instance="e", on_demand_eur_h="1")])
    quote = rental_quotes(team, "L4", 1, RentalWants(providers=("own",)), policy=POLICY)[0]
    assert quote.usd_per_hour == Decimal("1.1172")
    assert quote.notes[0].params["date"] == "2026-10-30"


def test_slices_are_no_devices_and_nothing_is_invented() -> None:
    """A vGPU slice, an unknown device and a count of zero give no quote."""
    team = Catalogue.load().with_overrides(offers=[row(instance="s", n_gpus="0.5", on_demand_usd_h="0.1")])
    assert rental_quotes(team, "L4", 1, RentalWants(providers=("own",)), policy=POLICY) == ()
    assert rental_quotes(team, "no such card", 1, policy=POLICY) == ()
    assert rental_quotes(team, "L4", 0, policy=POLICY) == ()


def test_cpu_machines_have_the_cores_memory_and_flags() -> None:
    """A CPU machine with 16 cores and AMX is the cheapest of the catalogue that has both."""
    catalogue = Catalogue.load()
    wants = RentalWants(vcpus=16, ram_gib=64, cpu_flags=("amx",))
    first = cpu_quotes(catalogue, wants, policy=POLICY)[0]
    able = [
        o.on_demand_usd_per_hour
        for o in catalogue.offers
        if not o.gpu and (o.vcpus or 0) >= 16 and (o.ram_gib or 0) >= 64 and "amx" in o.cpu_flags
    ]
    assert first.usd_per_hour == min(price for price in able if price)


def test_cheapest_is_the_minimum_of_all_offers() -> None:
    """For every accelerator and count the first quote is the minimum over its on-demand offers in USD."""
    catalogue = Catalogue.load()
    for name in {o.gpu for o in catalogue.offers if o.gpu and not o.on_demand_eur_per_hour}:
        for count in (1, 3, 8):
            quotes = rental_quotes(catalogue, name, count, policy=POLICY)
            costs = [
                price * ceil(count / int(o.n_gpus))
                for o in catalogue.offers
                if o.gpu == name and o.n_gpus >= 1
                and o.provider not in ("vast-ai", "salad", "akash") and "serverless" not in o.billing
                and (price := o.on_demand_usd_per_hour or (o.on_demand_eur_per_hour or 0) * Decimal("1.1172"))
            ]  # fmt: skip
            assert (quotes[0].usd_per_hour if quotes else None) == (min(costs) if costs else None)


def test_remembered_quotes_are_the_same_object() -> None:
    """The whole catalogue at sixteen counts is answered from memory the second time, well inside a ranking's time."""
    catalogue = Catalogue.load()
    names = [r["name"] for r in catalogue.accelerator_rows]
    first = [rental_quotes(catalogue, n, c, policy=POLICY) for n in names for c in range(1, 17)]
    start = perf_counter()
    second = [rental_quotes(catalogue, n, c, policy=POLICY) for n in names for c in range(1, 17)]
    assert perf_counter() - start < 0.5
    assert all(a is b for a, b in zip(first, second, strict=True))


def test_marketplaces_and_serverless_rates_count_only_where_asked() -> None:
    """The marketplace's 0.13 for an L4 is quoted where it is named; a serverless rate is a serverless quote."""
    named = rental_quotes(Catalogue.load(), "L4", 1, RentalWants(providers=("vast-ai",)), policy=POLICY)
    assert [q.usd_per_hour for q in named] == [Decimal("0.13")]
    serverless = rental_quotes(Catalogue.load(), "L4", 1, RentalWants(purchase="serverless"), policy=POLICY)
    assert serverless[0].usd_per_hour == Decimal("0.684")
    assert {q.purchase for q in serverless} == {"serverless"}
