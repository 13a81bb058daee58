"""Every source of prices keeps the port's contract; what each has of its own follows."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import ModuleType, SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest

from bot.sources.overrides import OFFER_COLUMNS
from bot.sources.prices.azure import AzurePrices
from bot.sources.prices.csv_list import CsvFile, CsvPrices
from bot.sources.prices.download import MIB, Downloader, Limits
from bot.sources.prices.errors import (
    PriceError,
    PricesMalformed,
    PricesNotInstalled,
    PricesTooLarge,
    PricesUnreachable,
)
from bot.sources.prices.gpuhunt_catalog import GpuhuntPrices
from bot.sources.prices.port import Answer, PriceSource
from rules.catalog.catalogue import Catalogue
from rules.catalog.offers import Offer
from tests.bot.price_server import Server, serving, status

TODAY = date(2026, 12, 1)
KNOWN = Catalogue.load().offers
QUICK = Downloader(Limits(silence_s=0.5, deadline_s=2.0, most_bytes=MIB), pause=lambda seconds: None)
HEADER = "provider,instance,region,gpu,n_gpus,on_demand_usd_h,price_date\n"
GOOD_CSV = HEADER + "lambda,gpu_2x_a6000,any,RTX A6000,2,1.7,2026-11-30\n"
NC24 = "Standard_NC24ads_A100_v4"


def item(**changes: object) -> dict[str, object]:
    """An item of the Azure API: the hourly price of one instance for Linux."""
    return {
        "currencyCode": "USD", "tierMinimumUnits": 0.0, "retailPrice": 3.5, "armRegionName": "eastus",
        "armSkuName": NC24, "skuName": "NC24ads A100 v4", "productName": "NCads A100 v4 Series",
        "unitOfMeasure": "1 Hour", "type": "Consumption", **changes,
    }  # fmt: skip


def page(*items: dict[str, object], after: str | None = None) -> str:
    """One page of the Azure API."""
    return json.dumps({"Items": list(items), "NextPageLink": after, "Count": len(items)})


@dataclass
class Item:
    """What gpuhunt gives of one machine."""

    provider: str = "lambdalabs"
    instance_name: str = "gpu_1x_new"
    location: str = "us-east-1"
    price: float = 1.25
    cpu: int = 14
    memory: float = 100.0
    gpu_count: int = 1
    gpu_name: str | None = "A10"
    gpu_memory: float | None = 24.0
    spot: bool = False


@contextmanager
def csv_source() -> Iterator[PriceSource]:
    """A good list over HTTP."""
    with serving() as server:
        server.says(GOOD_CSV)
        yield CsvPrices(f"{server.url}/offers.csv", QUICK)


@contextmanager
def azure_source() -> Iterator[PriceSource]:
    """The Azure API with one price for whatever is asked."""
    with serving() as server:
        server.says(page(item()))
        yield AzurePrices(server.url, QUICK)


@contextmanager
def gpuhunt_source() -> Iterator[PriceSource]:
    """gpuhunt with two items."""
    yield GpuhuntPrices(Catalogue.load(), lambda: [Item(), Item(spot=True, price=0.5)])


def ask(source: PriceSource, known: tuple[Offer, ...] = KNOWN) -> Answer:
    """The source's answer of today."""
    return source.offers(known, TODAY, lambda name, amount: None)


@pytest.mark.parametrize("source", [csv_source, azure_source, gpuhunt_source])
def test_contract_of_a_source(source: Callable[[], Iterator[PriceSource]]) -> None:
    """Rows have our columns, are offers as they stand, carry a date and belong to the scope; the source has a name."""
    with source() as real:  # type: ignore[attr-defined]
        answer = ask(real)
        assert real.name
    assert answer.rows
    for row in answer.rows:
        assert set(row) <= set(OFFER_COLUMNS)
        offer = Offer.from_row(row)
        assert offer.price_date or offer.spot_date
        assert offer.provider in answer.scope


def dripping(handler: BaseHTTPRequestHandler) -> None:
    """Sends a byte now and then, for longer than the deadline."""
    handler.send_response(200)
    handler.end_headers()
    for _ in range(100):
        handler.wfile.write(b"x")
        handler.wfile.flush()
        threading.Event().wait(0.1)


def endless(handler: BaseHTTPRequestHandler) -> None:
    """Sends without an end, as fast as it is read."""
    handler.send_response(200)
    handler.end_headers()
    for _ in range(10_000):
        handler.wfile.write(b"x" * 65536)


def silent(handler: BaseHTTPRequestHandler) -> None:
    """Says nothing."""
    threading.Event().wait(1.5)


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (status(404), PricesUnreachable, "HTTP 404"),
        (status(429), PricesUnreachable, "HTTP 429"),
        (status(429, Retry_After="3600"), PricesUnreachable, "asks to wait 3600 s"),
        (status(500), PricesUnreachable, "HTTP 500"),
        (status(302, Location="/again"), PricesUnreachable, "too many redirects"),
        (status(302, Location="file:///etc/passwd"), PricesUnreachable, "redirect to file"),
        (silent, PricesUnreachable, "silent"),
        (dripping, PricesUnreachable, "not finished"),
        (endless, PricesTooLarge, "1 MiB"),
    ],
)
@pytest.mark.parametrize("kind", [CsvPrices, AzurePrices])
def test_a_bad_answer_is_one_clear_error(kind: type, answer: object, error: type[PriceError], says: str) -> None:
    """Errors, loops, silence, drips and floods end within the limits, in an error that says what happened."""
    with serving() as server:
        server.answer = answer  # type: ignore[assignment]
        with pytest.raises(error, match=says):
            ask(kind(server.url, QUICK))


def test_nobody_listens() -> None:
    """A closed port is unreachable."""
    with pytest.raises(PricesUnreachable, match="ConnectError"):
        ask(CsvPrices("http://127.0.0.1:9/offers.csv", QUICK))


def test_a_busy_server_is_asked_again_as_it_says() -> None:
    """429 with a short Retry-After waits that long and then reads the answer; a redirect is followed."""
    waited: list[float] = []
    with serving() as server:
        steps = iter([status(429, Retry_After="7"), status(301, Location="/moved.csv")])
        good = Server()
        good.says(GOOD_CSV)
        server.answer = lambda handler: next(steps, good.answer)(handler)
        answer = ask(CsvPrices(f"{server.url}/a.csv", Downloader(Limits(), pause=waited.append)))
        assert server.asked == ["/a.csv", "/a.csv", "/moved.csv"]
    assert waited == [7.0]
    assert len(answer.rows) == 1


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("<html>sorry</html>", "without the columns"),
        ("", "without the columns"),
        (HEADER, "no offers"),
        (HEADER + "lambda,x,any\n", "line 2"),
        (HEADER + "a,b,c,d,1,2,2026-01-01,extra\n", "line 2"),
        (HEADER + 'lambda,"x', "unexpected end"),
        (b"\xff\xfe\x00", "UTF-8"),
    ],
)
def test_a_malformed_list_is_no_list(body: bytes | str, says: str) -> None:
    """What is not a whole CSV file with our columns is refused as one."""
    with serving() as server:
        server.says(body)
        with pytest.raises(PricesMalformed, match=says):
            ask(CsvPrices(server.url, QUICK))


def test_the_name_of_a_list_keeps_secrets_out() -> None:
    """Messages name the host alone."""
    assert CsvPrices("https://me:secret@prices.example/offers.csv?token=abc").name == "prices.example"


def test_a_list_on_disk(tmp_path: Path) -> None:
    """The same list is read from a file; a missing or oversized one is an error."""
    path = tmp_path / "list.csv"
    with pytest.raises(PricesUnreachable, match="No such file"):
        ask(CsvFile(path))
    path.write_text(GOOD_CSV, encoding="utf-8")
    assert ask(CsvFile(path)).rows[0]["instance"] == "gpu_2x_a6000"
    with pytest.raises(PricesTooLarge):
        ask(CsvFile(path, most_bytes=10))


@pytest.mark.parametrize("body", ["[]", "{}", "nope", '{"Items": 5}', '{"Items": [5]}', "[" * 5000])
def test_azure_malformed(body: str) -> None:
    """JSON of another shape is refused as a whole."""
    with serving() as server:
        server.says(body)
        with pytest.raises(PricesMalformed):
            ask(AzurePrices(server.url, QUICK))


def test_azure_prices_of_one_machine() -> None:
    """Linux on demand, spot and reserved an hour are taken; Windows, low priority and other currencies are not."""
    known = tuple(offer for offer in KNOWN if offer.instance == NC24)
    with serving() as server:
        more = page(
            item(retailPrice=0.9, skuName="NC24ads A100 v4 Spot"),
            item(retailPrice=0.5, skuName="NC24ads A100 v4 Low Priority"),
            item(retailPrice=1.0, productName="NCads A100 v4 Series Windows"),
        )
        first = page(
            item(),
            item(retailPrice=0.01, currencyCode="EUR"),
            item(retailPrice=1e300, type="Reservation", reservationTerm="1 Year"),
            item(retailPrice=True),
            item(retailPrice="0.1"),
            item(retailPrice=-1),
            item(retailPrice=0.01, armSkuName="Standard_other"),
            item(retailPrice=17520.0, type="Reservation", reservationTerm="1 Year"),
            item(retailPrice=26280, type="Reservation", reservationTerm="3 Years"),
            after=f"{server.url}/more",
        )
        bodies = {"/": first, "/more": more}

        def paged(handler: BaseHTTPRequestHandler) -> None:
            chosen = Server()
            chosen.says(bodies[urlsplit(handler.path).path])
            chosen.answer(handler)

        server.answer = paged
        (row,) = ask(AzurePrices(f"{server.url}/", QUICK), known).rows
        wanted = parse_qs(urlsplit(server.asked[0]).query)["$filter"][0]
    assert f"armSkuName eq '{NC24}'" in wanted
    offer = Offer.from_row(row)
    assert offer.on_demand_usd_per_hour == Decimal("3.5")
    assert offer.spot_usd_per_hour == Decimal("0.9")
    assert (offer.reserved_1y_usd_per_hour, offer.reserved_3y_usd_per_hour) == (Decimal(2), Decimal(1))
    assert (offer.gpu, offer.price_date, offer.spot_date) == ("A100 80GB PCIe", TODAY, TODAY)


def test_azure_stays_on_its_host() -> None:
    """A next page on another host, or a book without an end, is malformed."""
    with serving() as server:
        server.says(page(after="http://elsewhere.example/"))
        with pytest.raises(PricesMalformed, match="another host"):
            ask(AzurePrices(server.url, QUICK))
        server.says(page(after=f"{server.url}/again"))
        with pytest.raises(PricesMalformed, match="pages"):
            ask(AzurePrices(server.url, QUICK))


def test_gpuhunt_items_become_offers() -> None:
    """Spot and on-demand share a row, names of providers and devices are ours, an unknown region is the cheapest."""
    found = [
        Item(price=2.0, location="us-west-2"),
        Item(),
        Item(spot=True, price=0.5),
        Item(provider="azure", instance_name=NC24, location="eastus", gpu_name="A100", gpu_memory=80.0, price=3.6),
        Item(gpu_name="H100", gpu_memory=80.0, instance_name="gpu_1x_h100_pcie_new"),
        Item(gpu_name="Unheard Of 9000", instance_name="odd"),
    ]
    rows = {row["instance"]: row for row in ask(GpuhuntPrices(Catalogue.load(), lambda: found)).rows}
    assert rows["gpu_1x_new"]["provider"] == "lambda"
    assert (rows["gpu_1x_new"]["region"], rows["gpu_1x_new"]["gpu"]) == ("us-east-1", "A10")
    assert (rows["gpu_1x_new"]["on_demand_usd_h"], rows["gpu_1x_new"]["spot_usd_h"]) == ("1.25", "0.5")
    assert rows[NC24]["gpu"] == "A100 80GB PCIe"  # the form factor is the catalogue's
    assert rows["gpu_1x_h100_pcie_new"]["gpu"] == "H100 80GB PCIe"
    assert rows["odd"]["gpu"] == "Unheard Of 9000"
    with pytest.raises(PricesMalformed):
        ask(GpuhuntPrices(Catalogue.load(), list))


def test_azure_ends_in_time() -> None:
    """Many questions that are each answered in time still end together, after a limit of their own."""
    now = iter(range(0, 10_000, 100))
    patient = Downloader(Limits(deadline_s=1e6), clock=lambda: float(next(now)))
    with serving() as server:
        server.says(page(item()))
        with pytest.raises(PricesUnreachable, match="not finished after 300 s"):
            ask(AzurePrices(server.url, patient))


def test_a_secure_list_stays_secure() -> None:
    """A redirect from https to http is refused."""
    with pytest.raises(PricesUnreachable, match="redirect to http"):
        Downloader().next_url("https://prices.example/a", "http://prices.example/a", 1, "csv")
    assert Downloader().next_url("https://prices.example/a", "/b", 1, "csv") == "https://prices.example/b"


def test_gpuhunt_missing_or_failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package, and where it fails, the error is one of ours; with it, its default catalogue is asked."""
    source = GpuhuntPrices(Catalogue.load())
    monkeypatch.setitem(sys.modules, "gpuhunt", None)
    with pytest.raises(PricesNotInstalled):
        ask(source)
    module = ModuleType("gpuhunt")
    monkeypatch.setitem(sys.modules, "gpuhunt", module)
    with pytest.raises(PricesUnreachable, match="AttributeError"):
        ask(source)
    module.default_catalog = lambda: SimpleNamespace(query=lambda: [Item()])  # type: ignore[attr-defined]
    assert ask(source).rows[0]["instance"] == "gpu_1x_new"
