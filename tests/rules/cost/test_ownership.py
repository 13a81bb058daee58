"""Owning, its break-even, managed services and the purchase study: worked examples to the cent."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.catalog.catalogue import Catalogue
from rules.cost.break_even import Comparison, break_even
from rules.cost.errors import CostError
from rules.cost.managed import (
    TokenUse,
    break_even_tokens_per_day,
    break_even_utilisation,
    cheapest_endpoint,
    committed_break_even_utilisation,
    replicas_usd,
    serverless_usd,
)
from rules.cost.ownership import OwnershipWants, annuity, monthly_rate, ownership_cost, per_useful_hour, residual_share
from rules.cost.study import PurchaseStudy, StudyMeasurement, recompute
from rules.cost.types import OwnershipCost
from rules.policy import default_policy, policy_from

POLICY = default_policy()
CATALOGUE = Catalogue.load()


def owned(device: str = "RTX 4090", count: int = 1, hours: float = 19, **wants: object) -> OwnershipCost:
    """The cost of owning by the default policy."""
    asked = OwnershipWants(hours_per_week=hours, **wants)  # type: ignore[arg-type]
    return ownership_cost(CATALOGUE.find_accelerator(device), count, asked, CATALOGUE.ownership, POLICY)


def line(cost: OwnershipCost, item: str) -> str:
    """The expected amount of one line, to the cent."""
    return next(f"{x.amount.expected:.2f}" for x in cost.lines if x.item == item)


def case(**figures: object) -> Comparison:
    """A bare comparison: rent of 1.00 for 100 hours, a price of 1,000 and 36 months without interest."""
    zero = Decimal(0)
    base = Comparison(
        rent_usd_per_hour=Decimal(1), rent_hours=Decimal(100), speed_ratio=Decimal(1), price=Decimal(1000),
        residual=zero, fixed_per_month=zero, energy_per_hour=zero, rate=zero, life_months=36,
    )  # fmt: skip
    return replace(base, **figures)  # type: ignore[arg-type]


def test_desktop_card_line_by_line() -> None:
    """One RTX 4090 at 19 hours a week: 2,470 street and a 1,300 host, 938.60 left after three years, 9.06 of energy.

    (450 x 0.7 + 400) / 0.92 = 777.2 W; 19 x 730 / 168 = 82.56 h; x 0.1412 USD = 9.06. Upkeep 3,770 x 2 % / 12 = 6.28.
    """
    cost = owned()
    assert [line(cost, i) for i in ("devices", "host", "residual_value", "energy", "maintenance")] == [
        "2470.00", "1300.00", "938.60", "9.06", "6.28",
    ]  # fmt: skip
    assert f"{cost.purchase_price.expected:.2f}" == "3770.00"
    origins = {x.item: x.origin for x in cost.lines}
    assert (origins["maintenance"], origins["devices"], origins["residual_value"]) == (
        "operator assumption", "catalogue", "policy",
    )  # fmt: skip
    assert [n.message for n in cost.notes] == ["cost_people_not_counted"]


def test_eight_h100_in_colocation_pay_committed_power_and_no_energy() -> None:
    """A complete server of 325,000 with (8 x 700 + 4,600) / 0.92 = 11.087 kW committed at 195.94: 2,172.38 a month."""
    cost = owned("H100 80GB SXM5", 8, 168, place="colocation")
    assert [line(cost, i) for i in ("server", "colocation", "energy")] == ["325000.00", "2172.38", "0.00"]


def test_sunk_card_counts_its_resale_value_and_not_its_price() -> None:
    """A card owned already costs no purchase; 2,000 of resale now loses 62 % in three years."""
    cost = owned(sunk=True, resale_now_usd=Decimal(2000))
    assert f"{cost.purchase_price.expected - cost.residual_value.expected:.2f}" == "1240.00"
    assert owned(sunk=True).purchase_price.expected == 0


def test_electricity_by_country_and_without_recoverable_tax() -> None:
    """Spain's business price is the EU's 0.2125; a Spanish household's 0.2916 counts without 21 % of VAT."""
    assert line(owned(country="ES"), "energy") == "13.63"  # 64.163 kWh x 0.2125
    home = owned(country="ES", household=True)
    assert line(home, "energy") == "15.46"  # 64.163 kWh x 0.2916 / 1.21
    assert "cost_electricity_net_of_vat" in [n.message for n in home.notes]
    assumed = owned(country="AR")
    assert "cost_electricity_of_another_country" in [n.message for n in assumed.notes]
    assert line(owned(usd_per_kwh=Decimal("0.10")), "energy") == "6.42"


def test_administration_is_counted_where_it_is_told() -> None:
    """Four hours at 50 are 200 a month."""
    cost = owned(admin_hours_per_month=Decimal(4), admin_usd_per_hour=Decimal(50))
    assert line(cost, "administration") == "200.00"
    assert cost.notes == ()


def test_policy_figures_are_those_of_the_catalogue() -> None:
    """Defaults that a row of the catalogue gives are that row's figures."""
    for year in (1, 2, 3, 4):
        row = CATALOGUE.ownership.find(f"residual_share_year_{year}")
        assert row is not None
        assert (row.low, row.typical, row.high) == residual_share(12 * year, POLICY.ownership)
    rate = CATALOGUE.ownership.find("fx_eur_usd")
    assert rate is not None
    assert (float(rate.typical or 0), rate.as_of) == (POLICY.currency.usd_per_eur, POLICY.currency.as_of)


def test_annuity() -> None:
    """1,000 at 12 % a year (1 % a month) over 12 months is 88.85 a month; without interest 83.33."""
    assert f"{annuity(Decimal(1000), Decimal('0.01'), 12):.2f}" == "88.85"
    assert f"{annuity(Decimal(1000), Decimal(0), 12):.2f}" == "83.33"
    assert f"{(1 + monthly_rate(Decimal('0.08'))) ** 12:.6f}" == "1.080000"


def test_published_console_case() -> None:
    """Worked comparison 1: cloud 3,139,584 and own 2,648,681 over four years, payback 3.2 years, utilisation 59 %."""
    hours = Decimal(64 * 8760 * 4) * Decimal("0.7")
    published = case(
        rent_usd_per_hour=Decimal(2), rent_hours=hours / 48, price=Decimal(1_920_000),
        fixed_per_month=Decimal(728_680) / 48, life_months=48,
    )  # fmt: skip
    assert f"{published.rent * 48:.0f}" == "3139584"
    assert abs(published.own * 48 - 2_648_681) < 2  # the page rounds its inputs
    months = published.paid_back_after()
    assert months is not None
    assert f"{months / 12:.2f}" == "3.19"
    needed = published.hours_that_pay(Decimal(64 * 730))
    assert needed is not None
    assert f"{needed / (64 * 730):.2f}" == "0.59"
    # its NPV at 10 % is -9,440: at that rate a year owning does not pay back in four years
    yearly = replace(published, rate=Decimal("0.10"), life_months=4, rent_hours=hours / 4,
                     fixed_per_month=Decimal(728_680) / 4)  # fmt: skip
    rent, own = yearly.until(4)
    assert abs(rent - own + 9440) < 2
    assert yearly.paid_back_after() is not None
    assert (yearly.paid_back_after() or 0) > 4


def simulated(c: Comparison) -> int | None:
    """The first month in which renting has cost at least as much as owning, counted month by month."""
    value, left = c.residual, c.price
    for _ in range(c.life_months):
        value /= 1 + c.rate
    left -= value
    if left <= 0:
        return 0
    weight = Decimal(1)
    for month in range(1, 1200):
        weight /= 1 + c.rate
        left -= weight * (
            c.rent_usd_per_hour * c.rent_hours - c.fixed_per_month - c.energy_per_hour * c.rent_hours / c.speed_ratio
        )
        if left <= Decimal("1e-15"):
            return month
    return None


@settings(max_examples=80, derandomize=True, deadline=None)
@given(
    st.integers(10, 2000), st.integers(1, 730), st.integers(1, 40), st.integers(100, 90000), st.integers(0, 60),
    st.integers(0, 300), st.sampled_from(["0", "0.005", "0.01"]),
)  # fmt: skip
def test_closed_form_is_the_simulation(
    cents: int, hours: int, ratio: int, price: int, left: int, fixed: int, rate: str
) -> None:
    """The months of the closed form, rounded up, are those of a count month by month."""
    c = case(
        rent_usd_per_hour=Decimal(cents) / 100, rent_hours=Decimal(hours), speed_ratio=Decimal(ratio) / 10,
        price=Decimal(price), residual=Decimal(price) * left / 100, fixed_per_month=Decimal(fixed),
        energy_per_hour=Decimal("0.05"), rate=Decimal(rate),
    )  # fmt: skip
    months, counted = c.paid_back_after(), simulated(c)
    if months is None or months > 1190:
        assert counted is None or counted > 1180
    else:
        assert counted is not None
        assert abs(counted - months) <= 1
        assert counted >= months - Decimal("1e-9")


def test_rent_or_buy_of_the_desktop_card() -> None:
    """40 rented L4 hours a week at 0.44 against 19 on an own 4090: 76.48 of rent, 60 hours a week to pay back: rent."""
    result = break_even(owned(), Decimal("0.44"), 40, 40 / 19, POLICY)
    assert (result.cheaper, result.months, f"{result.rent_usd_per_month:.2f}") == ("rent", None, "76.48")
    assert result.hours_per_week is not None
    assert 59 < result.hours_per_week < 61
    more = break_even(owned(), Decimal("0.44"), float(result.hours_per_week) + 0.5, 40 / 19, POLICY)
    assert (more.cheaper, more.months is not None) == ("own", True)
    assert result.sensitivity[0][0] == "hours"
    assert [p.month for p in result.curve][:3] == [0, 3, 6]
    assert all(p.own_low <= p.own <= p.own_high and p.rent_low <= p.rent <= p.rent_high for p in result.curve)


def test_own_machine_that_is_too_slow_is_not_bought() -> None:
    """A machine at a tenth of the speed cannot do 100 hours a week of work."""
    result = break_even(owned(), Decimal(5), 100, 0.1, POLICY)
    assert (result.cheaper, result.months, result.notes[0].message) == ("rent", None, "cost_own_machine_too_slow")


@settings(max_examples=40, derandomize=True, deadline=None)
@given(
    st.sampled_from(["RTX 4090", "L4", "H100 80GB SXM5", "DGX Spark (GB10)"]),
    st.integers(1, 16), st.integers(1, 168), st.integers(1, 120), st.sampled_from(["office", "colocation"]),
)  # fmt: skip
def test_money_is_never_negative_and_ranges_are_ordered(
    name: str, count: int, hours: int, months: int, place: str
) -> None:
    """Every line and sum of owning has 0 <= low <= expected <= high."""
    cost = owned(name, count, hours, months=months, place=place)
    for amount in (
        cost.purchase_price,
        cost.residual_value,
        cost.per_month,
        cost.total,
        *(x.amount for x in cost.lines),
    ):
        assert 0 <= amount.low <= amount.expected <= amount.high


@pytest.mark.parametrize("wants", [{"hours": 0}, {"count": 0}, {"months": -1}, {"price_paid_usd": Decimal(-1)}])
def test_garbage_is_refused(wants: dict[str, object]) -> None:
    """Hours, counts and months are above zero, prices not negative."""
    with pytest.raises(CostError):
        owned(**wants)  # type: ignore[arg-type]


def test_managed_endpoint_against_a_machine() -> None:
    """Llama 3.1 8B: 0.02 in and 0.04 out is the cheapest; a 0.44 machine pays from 352 M tokens a day (half in)."""
    use = TokenUse(input_per_day=5e6, output_per_day=5e6)
    found = cheapest_endpoint(CATALOGUE.managed, "meta-llama/Llama-3.1-8B", use)
    assert found is not None
    price, cost = found
    assert (price.provider, cost.usd_per_million_tokens) == ("deepinfra", Decimal("0.03"))
    assert f"{cost.usd_per_month:.2f}" == "9.12"  # 0.30 a day
    assert break_even_tokens_per_day(Decimal("0.44"), price, use) == 352_000_000
    assert cheapest_endpoint(CATALOGUE.managed, "no/such-model", use) is None


def test_serverless_replicas_and_commitments() -> None:
    """Hugging Face: 0.50 x (730 + 182.5 x 2) = 547.50; 28 % off needs 72 %; an L4 at 0.44 pays from 55 % of 0.80."""
    assert replicas_usd(Decimal("0.50"), Decimal(730), 1, 2, Decimal("182.5")) == Decimal("547.50")
    assert committed_break_even_utilisation(Decimal(28)) == Decimal("0.72")
    assert break_even_utilisation(Decimal("0.44"), Decimal("0.80")) == Decimal("0.55")
    assert break_even_utilisation(Decimal(2), Decimal(1)) is None
    assert serverless_usd(Decimal("0.000222"), 3600, 10, 20) == Decimal("0.8436")  # 3,800 s


def test_study_moves_from_planned_to_ready_and_follows_the_measurements() -> None:
    """Fourteen measured days with a speed make a study ready; ten busy hours a day are 70 a week: buy."""
    study = PurchaseStudy(
        id="s", owned=owned(), rent_usd_per_hour=Decimal("0.44"), assumed_hours_per_week=40,
        assumed_rented_tokens_s=450, assumed_owned_tokens_s=950,
    )  # fmt: skip
    days = [
        StudyMeasurement(day=date(2026, 12, 1) + timedelta(n), machine="g6", side="rented", busy_hours=10, tokens_s=450)
        for n in range(14)
    ]
    planned, begun, ready = (recompute(study, days[:n], POLICY) for n in (0, 3, 14))
    assert [r.state for r in (planned, begun, ready)] == ["planned", "measuring", "ready"]
    assert (planned.hours_per_week, ready.hours_per_week) == (40, 70)
    assert (planned.break_even.cheaper, ready.break_even.cheaper) == ("rent", "own")
    assert begun.missing == ("hours",)


BARE = policy_from(
    {
        "ownership": {
            "cost_of_capital": [0, 0, 0],
            "maintenance_share_per_year": [0, 0, 0],
            **{f"residual_year_{y}": [0, 0, 0] for y in (1, 2, 3, 4)},
        }
    },
    POLICY,
)


@pytest.mark.parametrize(
    ("hardware", "other", "total", "full", "at_70_percent"),
    [
        (350_000, 225_000 + 40_000 + 36_000, 651_000, "3.10", "4.42"),
        (450_000, 300_000 + 40_000 + 72_000, 862_000, "4.10", "5.86"),
        (350_000, 40_000 + 36_000, 426_000, "2.03", "2.89"),
        (450_000, 40_000 + 72_000, 562_000, "2.67", "3.82"),
    ],
)
def test_published_eight_gpu_system(hardware: int, other: int, total: int, full: str, at_70_percent: str) -> None:
    """Worked comparison 3: one 8x H100 system over three years, with and without its engineer."""
    wants = OwnershipWants(
        hours_per_week=168, months=36, usd_per_kwh=Decimal(0), price_paid_usd=Decimal(hardware),
        admin_hours_per_month=Decimal(1), admin_usd_per_hour=Decimal(other) / 36,
    )  # fmt: skip
    cost = ownership_cost(CATALOGUE.find_accelerator("H100 80GB SXM5"), 8, wants, CATALOGUE.ownership, BARE)
    assert f"{cost.total.expected:.0f}" == str(total)
    assert f"{per_useful_hour(cost, 3 * 8760).expected:.2f}" == full
    assert f"{per_useful_hour(cost, 3 * 8760 * 0.7).expected:.2f}" == at_70_percent


@pytest.mark.parametrize(("years", "printed"), [(3, "1.64"), (5, "0.98")])
def test_published_hardware_only_hour(years: int, printed: str) -> None:
    """30,000 over 6,100 useful hours a year is 1.64 an hour in three years and 0.98 in five, hardware only."""
    wants = OwnershipWants(
        hours_per_week=100, months=12 * years, usd_per_kwh=Decimal(0), price_paid_usd=Decimal(30_000)
    )
    cost = ownership_cost(CATALOGUE.find_accelerator("H100 80GB SXM5"), 1, wants, CATALOGUE.ownership, BARE)
    assert f"{per_useful_hour(cost, 6100 * years).expected:.2f}" == printed
