"""Settings of the bot: the environment (`GPUFIT_…`) over a TOML file over the defaults.

The file is the one that `GPUFIT_SETTINGS` names, else `settings.toml` in the team's folder (`GPUFIT_HOME`). Tokens are
`SecretStr`: neither a log line nor an error shows them. The switches that let anything out of the house
(`GPUFIT_ALLOW_HUB`, `GPUFIT_ALLOW_PRICES`) are read by the sources themselves and stand in the environment only, so
that a file that is handed around cannot open a door.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

SWITCHES = {"allow_hub": "GPUFIT_ALLOW_HUB", "allow_prices": "GPUFIT_ALLOW_PRICES"}
ON = ("1", "true", "yes")
DATABASE = "gpufit.db"
_FILE = "settings.toml"
Days = Annotated[int, Field(ge=1, le=36_500)]


class SettingsError(Exception):
    """Settings that cannot be used: `name` says which, `detail` what is wrong; never the value."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.message_id = "settings_invalid"
        self.params = {"name": name, "detail": detail}


class KeptDays(BaseModel):
    """How long each kind is kept, in days (table `keep` of the file, `GPUFIT_KEEP__ANSWERS_DAYS=…`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    answers_days: Days = 365
    conversations_days: Days = 30
    events_days: Days = 7
    done_work_days: Days = 7
    feedback_days: Days = 1095


class Settings(BaseSettings):
    """All settings. `mode` is how Slack's messages arrive; `conversation_hours` is how long a conversation is kept."""

    model_config = SettingsConfigDict(
        env_prefix="GPUFIT_",
        env_nested_delimiter="__",
        env_ignore_empty=True,
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
    )

    slack_bot_token: SecretStr | None = None
    slack_app_token: SecretStr | None = None
    slack_signing_secret: SecretStr | None = None
    slack_client_id: str | None = None
    slack_client_secret: SecretStr | None = None
    slack_token_key: SecretStr | None = None
    slack_api_url: str = "https://slack.com/api/"
    mode: Literal["socket", "http"] = "socket"
    http_host: str = "127.0.0.1"
    http_port: int = Field(default=3000, ge=1, le=65_535)
    language: Literal["en", "es"] = "en"
    database: Path = Field(default_factory=lambda: state_folder() / DATABASE)
    conversation_hours: int = Field(default=24, ge=1, le=8760)
    keep: KeptDays = KeptDays()
    allow_hub: bool = False
    allow_prices: bool = False

    @field_validator("allow_hub", "allow_prices", mode="before")
    @classmethod
    def _switch(cls, value: Any) -> Any:
        """Exactly the words that the sources take as on; every other text is off."""
        return value.lower() in ON if isinstance(value, str) else value

    @field_validator("database", mode="after")
    @classmethod
    def _home(cls, value: Path) -> Path:
        return value.expanduser()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment wins over the file, which comes in as the arguments."""
        return env_settings, init_settings


def load() -> Settings:
    """The settings in force; raises `SettingsError` for the first that cannot be used."""
    path = settings_path()
    told = _told(path)
    for name, variable in SWITCHES.items():
        if name in told:
            raise SettingsError(f"{path}: {name}", f"stands in the environment only ({variable})")
    try:
        return Settings(**told)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False, include_context=False)[0]
        raise SettingsError(".".join(map(str, first["loc"])) or str(path), first["msg"]) from None


def settings_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the file is looked for."""
    if stated := environment.get("GPUFIT_SETTINGS"):
        return Path(stated).expanduser()
    from bot.sources.overrides import home_directory

    return home_directory(environment) / _FILE


def state_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the product keeps its state: `gpufit` in `XDG_STATE_HOME`, else in `~/.local/state`."""
    stated = environment.get("XDG_STATE_HOME", "")
    base = Path(stated) if stated.startswith("/") else Path.home() / ".local/state"  # a relative one is to be ignored
    return base / "gpufit"


def _told(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        if os.environ.get("GPUFIT_SETTINGS"):
            raise SettingsError("GPUFIT_SETTINGS", f"{path} is missing") from None
        return {}
    except tomllib.TOMLDecodeError as exc:
        raise SettingsError(str(path), str(exc)) from None
    except (OSError, UnicodeDecodeError) as exc:
        raise SettingsError(str(path), type(exc).__name__) from None
