"""`gpufit doctor`: each thing that can be wrong gives its line with what to do, and no line holds a token."""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from bot import cli
from bot.answers.words import LANGUAGES, words
from bot.commands.doctor import add_arguments, examined, report
from bot.commands.doctor_checks import NEEDED_SCOPES, Finding
from bot.commands.doctor_reach import HttpReach, Reply, Unreached
from bot.store.clock import SteppedClock
from bot.store.sqlite.connection import connected
from bot.store.sqlite.migrations import migrate
from bot.store.sqlite.store import SqliteStore
from rules.catalog.catalogue import Catalogue

NOW = datetime.combine(Catalogue.load().as_of, datetime.min.time(), UTC) + timedelta(days=3)
BOT, APP, SIGNING = "xoxb-123456789-abcdef", "xapp-1-A123456-abcdef", "0123456789abcdef" * 2
AUTH, SOCKET = "https://slack.com/api/auth.test", "https://slack.com/api/apps.connections.open"
HUB, PRICES = "https://huggingface.co", "https://prices.azure.com/api/retail/prices?$top=1"


class FakeReach:
    """Answers as told and remembers who was asked."""

    def __init__(self, replies: Mapping[str, Reply | str] | None = None) -> None:
        good = Reply(status=200, at=NOW, scopes=NEEDED_SCOPES, body={"ok": True, "team": "Lab"})
        self.replies: dict[str, Reply | str] = {AUTH: good, SOCKET: good, HUB: good, PRICES: good, **(replies or {})}
        self.asked: list[tuple[str, str | None]] = []

    def ask(self, url: str, token: str | None = None) -> Reply:
        """The reply for this address; a text is why there is none."""
        self.asked.append((url, token))
        reply = self.replies[url]
        if isinstance(reply, str):
            raise Unreached(reply)
        return reply


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sound store in the place that the settings name, and tokens for Socket Mode."""
    for name in [name for name in os.environ if name.startswith("GPUFIT_")]:
        monkeypatch.delenv(name)
    (tmp_path / "home").mkdir()
    path = tmp_path / "state" / "s.db"
    monkeypatch.setenv("GPUFIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GPUFIT_DATABASE", str(path))
    monkeypatch.setenv("GPUFIT_SLACK_BOT_TOKEN", BOT)
    monkeypatch.setenv("GPUFIT_SLACK_APP_TOKEN", APP)
    SqliteStore(path, SteppedClock(NOW)).close()
    return path


def found(*words: str, now: datetime = NOW, reach: FakeReach | None = None) -> list[Finding]:
    """What the doctor finds at a fixed time."""
    return list(examined(arguments(*words), SteppedClock(now), reach or FakeReach()))


def arguments(*words: str) -> argparse.Namespace:
    """Arguments as the command line reads them."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(words)


def bad(findings: list[Finding]) -> list[tuple[str, str]]:
    """Level and message of what is not all right; each says what to do, or says it itself."""
    return [(one.level, one.found.message) for one in findings if one.level != "ok"]


def test_all_is_well() -> None:
    """With tokens, a sound store and fresh prices every check is fine, offline and online, and the exit code is 0."""
    assert bad(found()) == []
    assert bad(found("--online")) == []
    assert {one.check for one in found("--online")} == {
        *("settings", "tokens", "database", "permissions", "catalogue", "clock", "slack", "scopes", "reach")
    }
    assert report(found(), arguments("--json")) == 0


def test_nothing_leaves_unless_asked() -> None:
    """Without `--online` nobody is asked; with it, only Slack and the sources that are switched on."""
    reach = FakeReach()
    found(reach=reach)
    assert reach.asked == []
    found("--online", reach=reach)
    assert reach.asked == [(AUTH, BOT), (SOCKET, APP)]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"SLACK_BOT_TOKEN": "", "SLACK_APP_TOKEN": ""}, [("warn", "doctor_no_tokens")]),
        ({"SLACK_APP_TOKEN": ""}, [("fail", "doctor_token_missing")]),
        ({"SLACK_BOT_TOKEN": APP}, [("fail", "doctor_token_shape")]),
        ({"SLACK_BOT_TOKEN": BOT + " "}, [("fail", "doctor_token_shape")]),
        ({"MODE": "http"}, [("fail", "doctor_token_missing")]),
        ({"MODE": "http", "SLACK_SIGNING_SECRET": SIGNING}, []),
        ({"MODE": "http", "SLACK_SIGNING_SECRET": "short"}, [("fail", "doctor_token_shape")]),
    ],
)
def test_tokens(changes: Mapping[str, str], expected: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each mode's tokens must be there and have their shape; none at all is only a warning."""
    for name, value in changes.items():
        monkeypatch.setenv(f"GPUFIT_{name}", value)
    assert bad(found()) == expected


def test_a_database_that_is_not_there_yet(database: Path) -> None:
    """Before the first start there is nothing wrong, and the doctor makes no file."""
    database.unlink()
    assert bad(found()) == []
    assert not database.exists()


def test_databases_that_are_not_right(database: Path) -> None:
    """A newer, an older, a foreign, a broken and a readable database each have their line."""
    with closing(sqlite3.connect(database)) as conn:
        conn.execute("pragma user_version = 99")
    assert bad(found()) == [("fail", "store_newer")]
    database.unlink()
    with closing(connected(database).conn) as conn:
        conn.execute("begin")
        from sqlite_utils import Database

        migrate(Database(conn), up_to=1)
        conn.execute("commit")
    database.chmod(0o600)
    assert bad(found()) == [("warn", "doctor_database_old")]
    database.write_bytes(b"no database at all " * 300)
    assert bad(found()) == [("fail", "store_not_ours")]
    database.unlink()
    database.mkdir()
    assert bad(found()) == [("fail", "store_unusable")]


def test_orphans_are_damage(database: Path) -> None:
    """A row whose parent is gone fails the check, though every page is whole."""
    with closing(sqlite3.connect(database)) as conn:
        conn.execute("insert into study_measurements values ('none', '2026-05-01', 'm', 'rented', 1.0, null)")
        conn.commit()
    assert bad(found()) == [("fail", "store_damaged")]


def test_permissions(database: Path) -> None:
    """A store that others may read fails, a folder that others may write in and a readable settings file are
    warned of, each with the command that sets it right."""
    database.chmod(0o644)
    database.parent.chmod(0o777)
    settings = Path(os.environ["GPUFIT_HOME"]) / "settings.toml"
    settings.write_text('language = "es"\n')
    settings.chmod(0o640)
    findings = found()
    assert bad(findings) == [
        ("warn", "doctor_file_readable"),
        ("warn", "doctor_folder_writable"),
        ("fail", "doctor_file_readable"),
    ]
    say = words("en").say
    assert [say(one.do) for one in findings if one.do] == [
        f"Run chmod 600 {settings}",
        f"Run chmod 700 {database.parent}",
        f"Run chmod 600 {database}",
    ]


def test_old_prices_and_a_wrong_clock() -> None:
    """Prices past the policy's limit are warned of; a clock before the catalogue's day fails."""
    assert bad(found(now=NOW + timedelta(days=400))) == [("warn", "doctor_catalogue_old")]
    assert bad(found(now=NOW - timedelta(days=30))) == [("fail", "doctor_clock_past")]


def reply(**changes: object) -> Reply:
    """Slack's good answer, changed."""
    good: dict[str, object] = {"status": 200, "at": NOW, "scopes": NEEDED_SCOPES, "body": {"ok": True, "team": "Lab"}}
    return Reply(**{**good, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "answer", "expected"),
    [
        (AUTH, reply(body={"ok": False, "error": "invalid_auth"}), [("fail", "doctor_slack_refuses")]),
        (AUTH, reply(scopes=NEEDED_SCOPES - {"commands"}), [("fail", "doctor_scopes_missing")]),
        (AUTH, reply(scopes=NEEDED_SCOPES | {"admin"}), [("warn", "doctor_scopes_more")]),
        (AUTH, reply(scopes=NEEDED_SCOPES | {"files:write"}), []),
        (AUTH, reply(at=NOW - timedelta(seconds=301)), [("fail", "doctor_clock_apart")]),
        (AUTH, reply(at=NOW + timedelta(seconds=61)), [("warn", "doctor_clock_apart")]),
        (AUTH, reply(at=None), []),
        (AUTH, reply(status=429, body={}), [("warn", "doctor_unwell")]),
        (AUTH, reply(body={}), [("fail", "doctor_slack_refuses")]),
        (AUTH, "ConnectTimeout", [("fail", "doctor_unreached")]),
        (SOCKET, reply(body={"ok": False, "error": "not_allowed_token_type"}), [("fail", "doctor_slack_refuses")]),
        (HUB, "ConnectError", [("fail", "doctor_unreached")]),
        (PRICES, reply(status=503), [("warn", "doctor_unwell")]),
    ],
)
def test_online(url: str, answer: Reply | str, expected: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    """What Slack refuses, scopes, the distance of the clocks, and places that do not answer."""
    monkeypatch.setenv("GPUFIT_ALLOW_HUB", "1")
    monkeypatch.setenv("GPUFIT_ALLOW_PRICES", "yes")
    assert bad(found("--online", reach=FakeReach({url: answer}))) == expected


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_line_is_said_and_holds_no_token(lang: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words and JSON are whole sentences in each language, and a token is in none, also where it is wrong."""
    monkeypatch.setenv("GPUFIT_SLACK_SIGNING_SECRET", "my-secret-word")
    monkeypatch.setenv("GPUFIT_MODE", "http")
    refused = FakeReach({AUTH: reply(body={"ok": False, "error": "invalid_auth"})})
    for findings in (found(), found("--online", reach=refused)):
        for one in findings:
            told = " ".join(words(lang).say(note) for note in (one.found, one.do) if note)
            assert "?" not in told
            assert " " in told
            assert not any(secret in told for secret in (BOT, APP, "my-secret-word"))


def test_the_command(database: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A line a check in the language asked for; exit code 1 where one failed; JSON has the same as data."""
    database.chmod(0o644)
    assert cli.main(["doctor", "--lang", "es"]) == 1
    said = capsys.readouterr().out
    assert f"fail  permissions  Otros pueden leer {database} (modo 644). Se corrige con chmod 600 {database}\n" in said
    database.chmod(0o600)
    monkeypatch.setenv("GPUFIT_SLACK_BOT_TOKEN", "short")
    assert cli.main(["doctor", "--json"]) == 1
    form = json.loads(capsys.readouterr().out)
    (wrong,) = [line for line in form if line["level"] == "fail"]
    assert (wrong["id"], wrong["params"]["shape"]) == ("doctor_token_shape", "xoxb-…")
    assert wrong["do"].startswith("Check that")


@pytest.fixture
def server() -> Iterator[str]:
    """A small HTTP server that answers as Slack does."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            ok = self.headers["Authorization"] == f"Bearer {BOT}"
            body = json.dumps({"ok": ok, "team": "Lab"}).encode()
            self.send_response(200)
            self.send_header("X-OAuth-Scopes", "commands, chat:write")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", "http://127.0.0.1:9/")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing on standard error."""

    running = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=running.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}/"
    running.shutdown()
    thread.join()
    running.server_close()


def test_the_real_adapter(server: str) -> None:
    """Over the network: token, scopes, date and JSON arrive; a redirect is not followed; no answer is `Unreached`."""
    told = HttpReach().ask(server, BOT)
    assert (told.status, told.scopes, told.body) == (200, {"commands", "chat:write"}, {"ok": True, "team": "Lab"})
    assert told.at is not None
    assert abs(datetime.now(UTC) - told.at) < timedelta(minutes=1)
    assert HttpReach().ask(server, "other").body["ok"] is False
    assert HttpReach().ask(server).status == 302
    with pytest.raises(Unreached, match="ConnectError"):
        HttpReach(timeout_s=0.5).ask("http://127.0.0.1:9/", BOT)
    with pytest.raises(Unreached):
        HttpReach().ask("no address", BOT)
