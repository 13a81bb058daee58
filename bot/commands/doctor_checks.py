"""The checks of `gpufit doctor`: each gives findings, with what to do where something is not right.

Nothing here changes anything, and no finding holds a token. Time and network come in as ports.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Literal
from urllib.parse import urljoin

from bot.commands.doctor_reach import Reach, Reply, Unreached
from bot.settings import Settings
from bot.store.clock import Clock
from bot.store.errors import StoreError, StoreUnusable
from bot.store.sqlite.backup import check
from bot.store.sqlite.migrations import VERSION
from rules.catalog.catalogue import Catalogue
from rules.memory.footprint import Note, Param
from rules.policy import Policy
from rules.records import dataclass

Level = Literal["ok", "warn", "fail"]
NEEDED_SCOPES = frozenset(("commands", "chat:write", "app_mentions:read", "im:history", "users:read"))
USEFUL_SCOPES = NEEDED_SCOPES | {"files:write", "usergroups:read"}
_SHAPES = {
    "slack_bot_token": re.compile(r"xoxb-[\w-]{8,}"),
    "slack_app_token": re.compile(r"xapp-[\w-]{8,}"),
    "slack_signing_secret": re.compile(r"[0-9a-f]{32}"),
    "slack_client_secret": re.compile(r"[0-9a-f]{32}"),
}
_HEX = Note("doctor_shape_hex")
_LOOK: Mapping[str, Param] = {
    "slack_bot_token": "xoxb-…",
    "slack_app_token": "xapp-…",
    "slack_signing_secret": _HEX,
    "slack_client_secret": _HEX,
}
_SIGNATURE_WINDOW = timedelta(seconds=300)  # Slack's requests are refused beyond it
_CLOCK_DOUBT = timedelta(seconds=60)
_PLACES = {"allow_hub": "https://huggingface.co", "allow_prices": "https://prices.azure.com/api/retail/prices?$top=1"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: the check, how it went, what was found, and what to do about it."""

    check: str
    level: Level
    found: Note
    do: Note | None = None


def _finding(check: str, level: Level, found: str, do: str | None = None, **params: Param) -> Finding:
    return Finding(check, level, Note(found, params), Note(do, params) if do else None)


def tokens(settings: Settings) -> Iterator[Finding]:
    """Whether the tokens that the mode needs are there and look like what they should be."""
    needed = ["slack_bot_token", "slack_app_token" if settings.mode == "socket" else "slack_signing_secret"]
    if settings.slack_client_id:
        needed += ["slack_client_secret", "slack_token_key", "slack_signing_secret"]
        needed.remove("slack_bot_token")  # each workspace brings its own
    told = [name for name in needed if getattr(settings, name) is not None]
    if not told:
        yield _finding("tokens", "warn", "doctor_no_tokens", "doctor_do_tokens", mode=settings.mode)
        return
    for name in dict.fromkeys(needed):
        secret = getattr(settings, name)
        variable = f"GPUFIT_{name.upper()}"
        shape = _SHAPES.get(name)
        if secret is None:
            yield _finding(
                "tokens", "fail", "doctor_token_missing", "doctor_do_token", name=variable, mode=settings.mode
            )
        elif shape is not None and not shape.fullmatch(secret.get_secret_value()):
            look = _LOOK[name]
            yield _finding("tokens", "fail", "doctor_token_shape", "doctor_do_token_shape", name=variable, shape=look)
        else:
            yield _finding("tokens", "ok", "doctor_token_there", name=variable)


def settings_file(path: Path) -> Iterator[Finding]:
    """Whether the settings file, which may hold tokens, is its owner's alone."""
    if not path.is_file():
        yield _finding("settings", "ok", "doctor_settings_none", path=str(path))
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        yield _readable(path, mode, "settings", "warn")
    else:
        yield _finding("settings", "ok", "doctor_settings_read", path=str(path))


def database(path: Path) -> Iterator[Finding]:
    """Whether the store's file is whole, of a known version, and its owner's alone."""
    shown = str(path)
    if not path.exists():
        yield _finding("database", "ok", "doctor_database_new", path=shown)
        return
    try:
        version, faults = check(path)
    except StoreUnusable as exc:
        yield Finding("database", "fail", Note(exc.message_id, exc.params), Note("doctor_do_path", {"path": shown}))
        return
    except StoreError as exc:
        yield Finding("database", "fail", Note(exc.message_id, exc.params))
        return
    if faults:
        yield _finding("database", "fail", "store_damaged", path=shown, detail=faults[0])
    elif version < VERSION:
        old, do = "doctor_database_old", "doctor_do_migrate"
        yield _finding("database", "warn", old, do, path=shown, version=version, known=VERSION)
    else:
        yield _finding("database", "ok", "doctor_database_sound", path=shown, version=version)
    for place in (path.parent, path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        yield from _permissions(place, path)


def _permissions(place: Path, database: Path) -> Iterator[Finding]:
    try:
        mode = stat.S_IMODE(place.stat().st_mode)
    except OSError:
        return  # a log that is not there just now
    if place == database.parent:
        if mode & 0o022 and not mode & stat.S_ISVTX:
            params = {"path": str(place), "mode": f"{mode:03o}", "wanted": "700"}
            yield _finding("permissions", "warn", "doctor_folder_writable", "doctor_do_chmod", **params)
    elif mode & 0o077:
        yield _readable(place, mode, "permissions", "fail")
    elif place == database:
        yield _finding("permissions", "ok", "doctor_file_private", path=str(place))


def _readable(place: Path, mode: int, check: str, level: Level) -> Finding:
    shown = f"{mode:03o}"
    return _finding(check, level, "doctor_file_readable", "doctor_do_chmod", path=str(place), mode=shown, wanted="600")


def catalogue_age(catalogue: Catalogue, policy: Policy, clock: Clock) -> Iterator[Finding]:
    """Whether the newest prices are younger than the policy's limit."""
    days = [day for offer in catalogue.offers for day in (offer.price_date, offer.spot_date) if day is not None]
    newest = max((catalogue.as_of, *days))
    age, limit, day = (clock.now().date() - newest).days, policy.prices.stale_after_days, newest.isoformat()
    if age > limit:
        old, do = "doctor_catalogue_old", "doctor_do_catalogue"
        yield _finding("catalogue", "warn", old, do, day=day, days=age, limit=limit)
    else:
        yield _finding("catalogue", "ok", "doctor_catalogue_fresh", version=catalogue.version, day=day)


def clock_set(catalogue: Catalogue, clock: Clock) -> Iterator[Finding]:
    """Whether the clock is at least past the day of the catalogue that ships."""
    params = {"day": clock.now().date().isoformat(), "than": catalogue.as_of.isoformat()}
    if clock.now().date() < catalogue.as_of - timedelta(days=1):
        yield _finding("clock", "fail", "doctor_clock_past", "doctor_do_clock", **params)
    else:
        yield _finding("clock", "ok", "doctor_clock_likely", **params)


def online(settings: Settings, clock: Clock, reach: Reach) -> Iterator[Finding]:
    """What others say: Slack about the tokens and their scopes, and whether the sources that are on can be reached."""
    if settings.slack_bot_token is not None:
        yield from _slack(settings, clock, reach)
    if settings.slack_app_token is not None and settings.mode == "socket":
        yield from _socket(settings, reach)
    for name, url in _PLACES.items():
        variable = f"GPUFIT_{name.upper()}"
        if not getattr(settings, name):
            yield _finding("reach", "ok", "doctor_source_off", name=variable)
            continue
        place = url.split("/")[2]
        try:
            status = reach.ask(url).status
        except Unreached as exc:
            yield _finding("reach", "fail", "doctor_unreached", "doctor_do_network", place=place, detail=str(exc))
            continue
        if status >= 500:
            yield _finding("reach", "warn", "doctor_unwell", "doctor_do_wait", place=place, status=status)
        else:
            yield _finding("reach", "ok", "doctor_reached", place=place)


def _slack(settings: Settings, clock: Clock, reach: Reach) -> Iterator[Finding]:
    reply, wrong = _asked("auth.test", "slack_bot_token", settings, reach)
    if reply is None:
        yield wrong
        return
    team = str(reply.body.get("team", ""))
    yield _finding("slack", "ok", "doctor_slack_knows", name="GPUFIT_SLACK_BOT_TOKEN", team=team)
    missing, more = sorted(NEEDED_SCOPES - reply.scopes), sorted(reply.scopes - USEFUL_SCOPES)
    if missing:
        yield _finding("scopes", "fail", "doctor_scopes_missing", "doctor_do_scopes", scopes=", ".join(missing))
    elif more:
        yield _finding("scopes", "warn", "doctor_scopes_more", "doctor_do_fewer_scopes", scopes=", ".join(more))
    else:
        yield _finding("scopes", "ok", "doctor_scopes_right", scopes=", ".join(sorted(reply.scopes)))
    if reply.at is not None:
        yield _drift(abs(clock.now() - reply.at))


def _drift(apart: timedelta) -> Finding:
    seconds = int(apart.total_seconds())
    if apart > _CLOCK_DOUBT:
        level: Level = "fail" if apart > _SIGNATURE_WINDOW else "warn"
        return _finding("clock", level, "doctor_clock_apart", "doctor_do_clock", seconds=seconds)
    return _finding("clock", "ok", "doctor_clock_right", seconds=seconds)


def _socket(settings: Settings, reach: Reach) -> Iterator[Finding]:
    reply, wrong = _asked("apps.connections.open", "slack_app_token", settings, reach)
    if reply is None:
        yield wrong
    else:
        yield _finding("slack", "ok", "doctor_socket_opens", name="GPUFIT_SLACK_APP_TOKEN")


def _asked(method: str, token: str, settings: Settings, reach: Reach) -> tuple[Reply | None, Finding]:
    """Slack's answer where it says ok, else None and the finding."""
    secret = getattr(settings, token).get_secret_value()
    place = settings.slack_api_url.split("/")[2] if "//" in settings.slack_api_url else settings.slack_api_url
    params: Mapping[str, Param] = {"place": place, "name": f"GPUFIT_{token.upper()}"}
    nothing = _finding("slack", "ok", "doctor_reached", place=place)
    try:
        reply = reach.ask(urljoin(settings.slack_api_url, method), secret)
    except Unreached as exc:
        return None, _finding("slack", "fail", "doctor_unreached", "doctor_do_network", detail=str(exc), **params)
    if reply.status >= 500 or reply.status == 429:
        return None, _finding("slack", "warn", "doctor_unwell", "doctor_do_wait", status=reply.status, **params)
    if reply.body.get("ok") is not True:
        error = re.sub(r"[^\w ]", "", str(reply.body.get("error", reply.status)))[:60]
        return None, _finding("slack", "fail", "doctor_slack_refuses", "doctor_do_reinstall", detail=error, **params)
    return reply, nothing
