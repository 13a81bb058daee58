"""Settings: the environment over the file over the defaults, and secrets that stay secret."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bot.settings import SWITCHES, SettingsError, load, state_folder
from bot.sources.prices.errors import PricesSwitchedOff
from bot.sources.prices.refresh import SWITCH, allow_outbound

TOKEN = "xoxb-1234-very-secret"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A team's folder without settings, and an environment without any."""
    for name in [name for name in os.environ if name.startswith(("GPUFIT_", "XDG_STATE"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GPUFIT_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_defaults(home: Path) -> None:
    """Without a file and variables there is no token, Socket Mode, and the database in the state folder."""
    settings = load()
    assert settings.slack_bot_token is None
    assert (settings.mode, settings.keep.answers_days) == ("socket", 365)
    assert settings.database == home / ".local/state/gpufit/gpufit.db"
    assert not settings.allow_hub


def test_the_environment_wins_over_the_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value of the file holds unless the environment has another; an empty variable is none."""
    (home / "settings.toml").write_text('mode = "http"\nlanguage = "es"\nhttp_port = 1\n[keep]\nanswers_days = 9\n')
    monkeypatch.setenv("GPUFIT_HTTP_PORT", "8080")
    monkeypatch.setenv("GPUFIT_LANGUAGE", "")
    monkeypatch.setenv("GPUFIT_KEEP__EVENTS_DAYS", "2")
    settings = load()
    assert (settings.mode, settings.http_port, settings.language) == ("http", 8080, "es")
    assert (settings.keep.answers_days, settings.keep.events_days, settings.keep.feedback_days) == (9, 2, 1095)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('modus = "http"', "modus"),
        ('mode = "pigeon"', "mode"),
        ("http_port = 0", "http_port"),
        ("[keep]\nanswers_days = 0", r"keep\.answers_days"),
        ("[keep]\nyears = 1", r"keep\.years"),
        ("mode = ", "settings.toml"),
        ("allow_hub = true", "GPUFIT_ALLOW_HUB"),
        ("allow_prices = false", "GPUFIT_ALLOW_PRICES"),
    ],
)
def test_what_is_wrong_is_named(home: Path, text: str, named: str) -> None:
    """A setting that is unknown or impossible, or an outbound switch in the file, is refused by name."""
    (home / "settings.toml").write_text(text)
    with pytest.raises(SettingsError, match=named):
        load()


def test_a_stated_file_must_exist(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`GPUFIT_SETTINGS` that points at nothing is an error, not a bot without settings."""
    monkeypatch.setenv("GPUFIT_SETTINGS", str(home / "none.toml"))
    with pytest.raises(SettingsError, match=r"none\.toml is missing"):
        load()


def test_no_text_shows_a_secret(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the settings as text or JSON nor an error holds a token's value."""
    monkeypatch.setenv("GPUFIT_SLACK_BOT_TOKEN", TOKEN)
    settings = load()
    assert settings.slack_bot_token is not None
    assert settings.slack_bot_token.get_secret_value() == TOKEN
    for shown in (repr(settings), str(settings), settings.model_dump_json()):
        assert TOKEN not in shown
    (home / "settings.toml").write_text(f'slack_signing_secret = ["{TOKEN}"]')
    with pytest.raises(SettingsError) as wrong:
        load()
    assert TOKEN not in f"{wrong.value!r} {wrong.value.params}"


@pytest.mark.parametrize("word", ["1", "true", "YES", "on", "0", "maybe"])
def test_switches_mean_what_they_mean_to_the_sources(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For every word the settings and the source of prices agree whether outbound access is on."""
    assert SWITCHES["allow_prices"] == SWITCH
    monkeypatch.setenv(SWITCH, word)
    try:
        allow_outbound("azure", environment=os.environ)
        on = True
    except PricesSwitchedOff:
        on = False
    assert load().allow_prices is on


def test_the_state_folder_follows_xdg(tmp_path: Path) -> None:
    """`XDG_STATE_HOME` names the place; a relative one is ignored, as its specification asks."""
    assert state_folder({"XDG_STATE_HOME": str(tmp_path)}) == tmp_path / "gpufit"
    assert state_folder({"XDG_STATE_HOME": "here"}) == Path.home() / ".local/state/gpufit"
