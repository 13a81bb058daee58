"""Questions of time, load and money through the real command, each against a calculation made by hand in this file."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest

GIB = 2**30
HOURS_A_MONTH_AT_40_A_WEEK = 40 * 730 / 168


def ask(question: str) -> dict[str, Any]:
    """What `gpufit ask QUESTION --json` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "bot.cli", "ask", question, "--json"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_fifty_thousand_samples_on_a_4090() -> None:
    """75 million tokens of LoRA on 8B parameters: 6 operations a weight (checkpointing), 30 to 70 % of 165 TFLOPS."""
    advice = ask("50k samples of 1.5k tokens, 8B LoRA on a 4090, how long")["advice"]
    tokens, weights, peak = 50_000 * 1500, 8.03e9, 165.2e12
    slowest, quickest = (tokens * 6 * weights / (peak * share) for share in (0.3, 0.75))
    total = advice["speed"]["total_s"]
    assert quickest < total["expected"] < slowest
    assert total["low"] < total["expected"] < total["high"]
    rate = advice["speed"]["tokens_per_s_per_device"]["expected"]
    assert total["expected"] == pytest.approx(tokens / rate, rel=0.001)


def test_rent_or_buy_at_forty_hours_a_week() -> None:
    """The rent a month is the hourly price times the hours; the owner's month is the annuity plus what it runs on."""
    found = ask("rent or buy for 40 h a week of 13B QLoRA")["advice"]["rent_or_buy"]
    hourly = float(found["rent"]["usd_per_hour"])
    assert float(found["break_even"]["rent_usd_per_month"]) == pytest.approx(
        hourly * HOURS_A_MONTH_AT_40_A_WEEK, abs=0.01
    )
    price, left = (float(found["own"][name]["expected"]) for name in ("purchase_price", "residual_value"))
    running, months = float(found["own"]["per_month"]["expected"]), found["own"]["months"]
    rate = 1.08 ** (1 / 12) - 1
    tied_up = price - left / (1 + rate) ** months
    month = tied_up * rate / (1 - (1 + rate) ** -months) + running
    assert float(found["break_even"]["own_usd_per_month"]) == pytest.approx(month, rel=0.02)
    assert found["break_even"]["cheaper"] == ("rent" if month > hourly * HOURS_A_MONTH_AT_40_A_WEEK else "own")


def test_three_million_tokens_a_day_in_the_eu() -> None:
    """Three million tokens a day are 35 a second on average: one card carries them, and it stands in the EU."""
    advice = ask("3M tokens a day on qwen 32b, eu only")["advice"]
    best = advice["options"][0]
    carried = best["capacity"]
    mean_requests_s = 3e6 / 86_400 / (512 + 256)
    assert carried["share"] == pytest.approx(3 * mean_requests_s / carried["requests_s"], rel=0.01)
    assert carried["meets"] is True
    assert best["cost"]["quote"]["region"] != "any"
    month = Decimal(best["cost"]["quote"]["usd_per_hour"]) * 730
    assert Decimal(best["cost"]["usd_per_month"]) == pytest.approx(month, abs=Decimal("0.01"))


def test_thirty_users_under_300_ms() -> None:
    """Thirty at once: the weights are read once a step, each cache besides; the first token waits for its prompts."""
    best = ask("cheapest way to serve llama 3 8b to 30 concurrent users under 300 ms TTFT")["advice"]["options"][0]
    assert best["speed"]["concurrency"] == 30
    assert best["speed"]["ttft_s"]["expected"] < 0.3
    cache = 30 * (512 + 128) * 2 * 32 * 8 * 128 * 2
    fastest_step = (15e9 + cache) / (best["count"] * 3.4e12)
    assert best["speed"]["tpot_s"]["expected"] > fastest_step
    assert best["capacity"]["meets"] is True


def test_a_classifier_at_twenty_requests_a_second_needs_no_gpu() -> None:
    """22 billion operations a request, 20 a second: under a tenth of one server CPU's 16-bit peak."""
    answer = ask("bert classifier 20 rps, cpu or gpu?")["advice"]
    best = answer["options"][0]
    assert best["kind"] == "cpu"
    assert answer["outcome"] == "cpu"
    assert best["capacity"]["share"] < 0.5
    assert best["speed"]["latency_s"]["expected"] < 0.1


def test_a_budget_of_3000_euros_buys_nothing_dearer() -> None:
    """A 7B in 4 bits is about 4 GiB: small cards within 3,000 EUR, in Spanish."""
    answer = ask("presupuesto 3000 €, 7B local")
    assert answer["understood"]["lang"] == "es"
    for option in (o for o in answer["advice"]["options"] if o["kind"] == "gpu"):
        price = option["cost"].get("street_price_usd") or option["cost"]["list_price_usd"]
        assert float(price) <= 3000 * 1.1172
    first = answer["advice"]["options"][0]
    assert 6.74e9 * 4.5 / 8 / GIB < first["need"]["expected_gib"] < 9


def test_eight_h100_for_three_days() -> None:
    """Without a model the price is that of the machines: 72 hours at the quoted rate."""
    done = subprocess.run(
        [sys.executable, "-m", "bot.cli", "ask", "8xH100 for 3 days, how much", "--plain"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    flat = " ".join(done.stdout.split())
    hourly = float(flat.split("$")[1].split()[0])
    total = float(flat.split("72 h come to $")[1].split(".")[0].replace(",", ""))
    assert total == pytest.approx(72 * hourly, abs=1)
