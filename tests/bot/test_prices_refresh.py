"""A refresh takes a price list whole or not at all, and the team's folder always holds good prices."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from bot.cli import main
from bot.sources.overrides import REFRESHED, load_overrides
from bot.sources.prices.errors import (
    NothingToRevert,
    PriceError,
    PricesOlder,
    PricesPartial,
    PricesSwitchedOff,
    PricesUnreachable,
    RefreshBusy,
)
from bot.sources.prices.port import Answer, Progress, Row, row_of
from bot.sources.prices.refresh import Refresh, allow_outbound, refresh
from bot.sources.prices.swap import PREVIOUS, revert, sole_writer
from rules.catalog.catalogue import Catalogue
from rules.catalog.offers import Offer
from rules.policy import default_policy
from tests.bot.price_server import serving

TODAY = date(2026, 12, 1)
POLICY = default_policy().prices
LAMBDA = [row_of(offer) for offer in Catalogue.load().offers if offer.provider == "lambda"]


@dataclass
class Source:
    """A source that says what a test wants."""

    rows: Sequence[Row]
    name: str = "fake"

    def offers(self, known: Sequence[Offer], today: date, progress: Progress) -> Answer:
        """The rows, for the providers in them."""
        return Answer(tuple(self.rows), frozenset(row["provider"] for row in self.rows))


def dearer(factor: str = "1.1", day: date = TODAY, **changes: str) -> list[dict[str, str]]:
    """Every offer of one provider at another price and date."""
    return [
        {
            **row,
            "on_demand_usd_h": str(Decimal(row["on_demand_usd_h"]) * Decimal(factor)),
            "price_date": day.isoformat(),
            **changes,
        }
        for row in LAMBDA
    ]


def as_csv(rows: Sequence[Row]) -> str:
    """The rows as a list with a header."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def run(folder: Path, rows: Sequence[Row], *, dry_run: bool = False, accept_partial: bool = False) -> Refresh:
    """One refresh from these rows."""
    source, quiet = Source(rows), lambda name, amount: None
    return refresh(source, folder, POLICY, today=TODAY, progress=quiet, dry_run=dry_run, accept_partial=accept_partial)


def prices(folder: Path) -> dict[str, Decimal | None]:
    """On-demand prices of the provider as the product sees them."""
    offers = load_overrides(folder).over(Catalogue.load()).offers
    return {o.instance: o.on_demand_usd_per_hour for o in offers if o.provider == "lambda"}


def test_fresh_prices_reach_the_catalogue(tmp_path: Path) -> None:
    """A good list is in use at once, with its date, and leaves every other offer as it was."""
    before = load_overrides(tmp_path).over(Catalogue.load()).offers
    done = run(tmp_path, dearer())
    assert (done.known, done.confirmed, done.new, done.changed, done.refused) == (13, 13, 0, 13, ())
    after = load_overrides(tmp_path).over(Catalogue.load()).offers
    assert len(after) == len(before)
    assert {o.price_date for o in after if o.provider == "lambda"} == {TODAY}
    old = {o.instance: o.on_demand_usd_per_hour for o in before if o.provider == "lambda"}
    assert all(price == old[name] * Decimal("1.1") for name, price in prices(tmp_path).items())  # type: ignore[operator]
    others = {o for o in before if o.provider != "lambda"}
    assert {o for o in after if o.provider != "lambda"} == others


def test_one_row_of_a_marketplace_leaves_the_others(tmp_path: Path) -> None:
    """Where many devices share an instance name, a fresh price replaces that of its device alone."""
    shared = [o for o in Catalogue.load().offers if (o.provider, o.instance) == ("runpod", "community cloud")]
    row = {**row_of(shared[0]), "price_date": TODAY.isoformat()}
    run(tmp_path, [row], accept_partial=True)
    offers = load_overrides(tmp_path).over(Catalogue.load()).offers
    assert len([o for o in offers if (o.provider, o.instance) == ("runpod", "community cloud")]) == len(shared)


def test_the_teams_own_contract_stays_in_front(tmp_path: Path) -> None:
    """A row of the team's `offers.csv` wins over a fresh price of the same machine."""
    own = {**LAMBDA[0], "on_demand_usd_h": "0.01"}
    (tmp_path / "offers.csv").write_text(as_csv([own]), encoding="utf-8")
    run(tmp_path, dearer())
    assert prices(tmp_path)[LAMBDA[0]["instance"]] == Decimal("0.01")
    assert len(prices(tmp_path)) == len(LAMBDA)


def test_a_newer_package_wins_over_an_old_refresh() -> None:
    """Of a refreshed price and a packaged one the later counts, so that an update of the product is not held back."""
    catalogue = Catalogue.load()
    old, new = dearer("1.1", date(2020, 1, 1)), dearer("1.2")
    packaged = {o.instance: o.on_demand_usd_per_hour for o in catalogue.offers if o.provider == "lambda"}
    for rows, factor in ((old, Decimal(1)), (new, Decimal("1.2"))):
        offers = catalogue.with_overrides(refreshed=rows).offers
        found = {o.instance: o.on_demand_usd_per_hour for o in offers if o.provider == "lambda"}
        assert found == {name: price * factor for name, price in packaged.items() if price}
        assert len(offers) == len(catalogue.offers)


def test_files_are_the_owners_and_the_old_one_is_kept(tmp_path: Path) -> None:
    """Mode 0600, no file left aside; the second refresh keeps the first, and revert exchanges them, twice."""
    first, second = dearer("1.1"), dearer("1.2")
    run(tmp_path, first)
    was = prices(tmp_path)
    run(tmp_path, second)
    now = prices(tmp_path)
    assert was != now
    assert {path.name for path in tmp_path.iterdir()} == {REFRESHED, PREVIOUS, ".offers.refresh.lock"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    revert(tmp_path)
    assert prices(tmp_path) == was
    revert(tmp_path)
    assert prices(tmp_path) == now


def test_the_first_refresh_can_be_reverted(tmp_path: Path) -> None:
    """Before the first refresh the packaged prices were in use, and they are so again."""
    packaged = prices(tmp_path)
    with pytest.raises(NothingToRevert):
        revert(tmp_path)
    run(tmp_path, dearer())
    revert(tmp_path)
    assert prices(tmp_path) == packaged


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    """It says the same and writes no prices."""
    done = run(tmp_path, dearer(), dry_run=True)
    assert done.written is None
    assert done.confirmed == len(LAMBDA)
    assert not (tmp_path / REFRESHED).exists()
    assert replace(run(tmp_path, dearer()), written=None) == done


def test_a_partial_list_is_refused_unless_accepted(tmp_path: Path) -> None:
    """Fewer than the policy's share of known offers change nothing; accepted, the missing ones keep what they had."""
    run(tmp_path, dearer("1.1"))
    half = dearer("1.3")[:7]
    with pytest.raises(PricesPartial, match="7 of 13"):
        run(tmp_path, half)
    before = prices(tmp_path)
    done = run(tmp_path, half, accept_partial=True)
    after = prices(tmp_path)
    assert done.confirmed == 7
    assert sum(after[name] != before[name] for name in after) == 7


def test_an_older_list_is_refused(tmp_path: Path) -> None:
    """A list whose newest price is older than the newest in use is stale, accepted partial or not."""
    run(tmp_path, dearer())
    with pytest.raises(PricesOlder):
        run(tmp_path, dearer("1.3", TODAY - timedelta(days=1)), accept_partial=True)


REFUSALS = [
    ({"gpu": "Unheard Of 9000"}, "refresh_row_unknown_device"),
    ({"gpu_memory_gb_each": "999"}, "refresh_row_memory"),
    ({"gpu_memory_gb_each": "lots"}, "refresh_row_invalid"),
    ({"on_demand_usd_h": "999"}, "refresh_row_price_jump"),
    ({"on_demand_usd_h": "0.01"}, "refresh_row_price_jump"),
    ({"on_demand_usd_h": "1e999999"}, "refresh_row_invalid"),
    ({"spot_usd_h": "1e-999999"}, "refresh_row_invalid"),
    ({"gpu": "", "n_gpus": "0", "on_demand_usd_h": "200000"}, "refresh_row_invalid"),
    ({"on_demand_usd_h": "free"}, "refresh_row_invalid"),
    ({"on_demand_usd_h": "-1"}, "refresh_row_invalid"),
    ({"on_demand_usd_h": "NaN"}, "refresh_row_invalid"),
    ({"on_demand_usd_h": ""}, "refresh_row_no_price"),
    ({"price_date": ""}, "refresh_row_undated"),
    ({"price_date": "soon"}, "refresh_row_invalid"),
    ({"price_date": "2027-01-01"}, "refresh_row_future"),
    ({"price_date": "2020-01-01"}, "refresh_row_older"),
    ({"n_gpus": "0"}, "refresh_row_invalid"),
    ({"n_gpus": "many"}, "refresh_row_invalid"),
    ({"region": ""}, "refresh_row_invalid"),
    ({"instance": "brand-new", "on_demand_usd_h": "999"}, "refresh_row_price_jump"),
]


@pytest.mark.parametrize(("change", "reason"), REFUSALS, ids=lambda value: str(value))
def test_a_wrong_row_is_refused_with_its_reason(tmp_path: Path, change: dict[str, str], reason: str) -> None:
    """One wrong row keeps what it had, is told with its reason, and the others go in."""
    before, rows = prices(tmp_path), dearer()
    rows[0] = {**rows[0], **change}
    done = run(tmp_path, rows)
    assert [note.message for note in done.refused] == [reason]
    assert done.confirmed == len(LAMBDA) - 1
    assert prices(tmp_path)[LAMBDA[0]["instance"]] == before[LAMBDA[0]["instance"]]


def test_of_two_prices_for_one_machine_the_first_counts(tmp_path: Path) -> None:
    """A second row for the same offer is refused."""
    rows = dearer()
    done = run(tmp_path, [*rows, {**rows[0], "on_demand_usd_h": "1.0"}])
    assert [note.message for note in done.refused] == ["refresh_row_twice"]


def test_a_list_of_wrong_rows_changes_nothing(tmp_path: Path) -> None:
    """Implausible prices throughout are refused row by row and then, as too few are left, as a whole."""
    with pytest.raises(PricesPartial, match="0 of 13"):
        run(tmp_path, dearer("100"))
    assert not (tmp_path / REFRESHED).exists()


def test_packaged_offers_pass_their_own_check(tmp_path: Path) -> None:
    """The whole packaged list, dated today, is accepted but for rows of no price in a known currency."""
    rows = [{**row_of(o), "price_date": TODAY.isoformat()} for o in Catalogue.load().offers]
    done = run(tmp_path, rows)
    assert done.confirmed == done.known == len(Catalogue.load().offers)


def test_outbound_is_off_unless_the_operator_says_so() -> None:
    """Without the switch nothing leaves the machine, and the error names it."""
    with pytest.raises(PricesSwitchedOff, match="GPUFIT_ALLOW_PRICES=1"):
        allow_outbound("azure", environment={})
    allow_outbound("azure", environment={"GPUFIT_ALLOW_PRICES": "1"})


def test_one_refresh_at_a_time(tmp_path: Path) -> None:
    """A second one in the same folder is turned away."""
    with sole_writer(tmp_path), pytest.raises(RefreshBusy):
        run(tmp_path, dearer())


def test_a_failing_source_changes_nothing(tmp_path: Path) -> None:
    """An error of the source leaves the folder as it was and open for the next refresh."""

    class Failing(Source):
        def offers(self, known: Sequence[Offer], today: date, progress: Progress) -> Answer:
            raise PricesUnreachable("fake", "gone")

    run(tmp_path, dearer())
    before = (tmp_path / REFRESHED).read_bytes()
    with pytest.raises(PriceError):
        refresh(Failing([]), tmp_path, POLICY, today=TODAY, progress=lambda name, amount: None)
    assert (tmp_path / REFRESHED).read_bytes() == before
    run(tmp_path, dearer("1.2"))


KILLED = """
import os, signal, sys
from pathlib import Path
from bot.sources.prices import swap
at, calls = int(sys.argv[2]), 0
def counted(real):
    def call(*args):
        global calls
        calls += 1
        if calls == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args)
    return call
os.replace, os.fsync = counted(os.replace), counted(os.fsync)
swap.swap_in(Path(sys.argv[1]), [{"provider": "new"}])
print(calls)
"""


def test_a_kill_at_any_step_leaves_the_old_file_or_the_new(tmp_path: Path) -> None:
    """Killed before each write to disk and each rename, the prices in use are whole, and the next swap works."""
    run(tmp_path, dearer())
    old = (tmp_path / REFRESHED).read_bytes()
    steps = 5  # two files synced, two renames, the folder synced
    for at in range(1, steps + 1):
        done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), str(at)], capture_output=True, text=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
        found = (tmp_path / REFRESHED).read_bytes()
        assert found == old if at < steps else found.splitlines()[1].startswith(b"new,")
        os.chmod(tmp_path / REFRESHED, 0o600)
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), "0"], capture_output=True, text=True)
    assert done.stdout.strip() == str(steps)


def test_the_command_end_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`gpufit catalog refresh` from a server: off, then a dry run, for real, as JSON, and back."""
    monkeypatch.delenv("GPUFIT_ALLOW_PRICES", raising=False)
    folder = ["--overrides", str(tmp_path)]
    rows = dearer(day=date(2026, 11, 30))
    body = as_csv(rows)
    with serving() as server:
        server.says(body)
        command = ["catalog", "refresh", "--source", "csv", "--url", server.url, *folder]
        assert main(command) == 1
        assert "GPUFIT_ALLOW_PRICES=1" in capsys.readouterr().err
        assert server.asked == []
        monkeypatch.setenv("GPUFIT_ALLOW_PRICES", "1")
        assert main([*command, "--dry-run", "--lang", "es"]) == 0
        assert "no se guardó nada" in capsys.readouterr().out
        assert main([*command, "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert (report["confirmed"], report["refused"]) == (len(LAMBDA), [])
        server.says("<html>")
        assert main(command) == 1
        assert "not a price list" in capsys.readouterr().err
    assert main(["catalog", "refresh", "--revert", *folder]) == 0
    assert "previous prices are in use again" in capsys.readouterr().out
    assert main(["catalog", "refresh", "--source", "csv", *folder]) == 2
    assert main(["catalog", "refresh", "--source", "azure", "--file", "x", *folder]) == 2


def test_a_list_on_disk_needs_no_switch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An operator without outbound access refreshes from a file; refused rows are printed with their reasons."""
    monkeypatch.delenv("GPUFIT_ALLOW_PRICES", raising=False)
    rows = dearer(day=date(2026, 11, 30))
    rows[0]["gpu"] = "Unheard Of 9000"
    path = tmp_path / "list.csv"
    path.write_text(as_csv(rows), encoding="utf-8")
    assert main(["catalog", "refresh", "--source", "csv", "--file", str(path), "--overrides", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "12 of 13" in said
    assert "1 row was refused" in said
    assert "Unheard Of 9000 is not in the catalogue" in said
