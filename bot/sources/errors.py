"""Errors of outside sources: a team's files and the Hugging Face Hub.

SourceError             one line for the user; `message_id` and `params` let a surface say it in the user's language
├── OverrideError       a row of a team's file is wrong; names the file and the line
├── ConfigError         a `config.json` cannot be read
└── HubError            the Hub cannot be used
    ├── HubSwitchedOff  the operator has not allowed outbound access
    ├── HubNotInstalled the optional package is missing
    ├── HubNotFound     no such model, or it is gated and no token is set
    └── HubUnreachable  no answer within the time-out
"""

from __future__ import annotations


class SourceError(Exception):
    """An outside source that cannot be used; `params` fill the translated message `message_id`."""

    def __init__(self, message_id: str, text: str, **params: str | int) -> None:
        super().__init__(text)
        self.message_id = message_id
        self.params = params


class OverrideError(SourceError):
    """A row of a team's file is wrong."""

    def __init__(self, file: str, line: int, detail: str) -> None:
        super().__init__("override_row_invalid", f"{file}, line {line}: {detail}", file=file, line=line, detail=detail)
        self.file = file
        self.line = line


class ConfigError(SourceError):
    """A `config.json` that is missing or cannot be read."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__("config_unreadable", f"{path}: {detail}", path=path, detail=detail)


class HubError(SourceError):
    """The Hub cannot be used for this model."""


class HubSwitchedOff(HubError):
    """Outbound access is off."""

    def __init__(self, hub_id: str) -> None:
        text = f"{hub_id}: outbound access is off; set GPUFIT_ALLOW_HUB=1, or give the path of a config.json"
        super().__init__("hub_switched_off", text, model=hub_id)


class HubNotInstalled(HubError):
    """The package that talks to the Hub is not installed."""

    def __init__(self) -> None:
        super().__init__("hub_not_installed", "the package huggingface_hub is missing; install gpufit[hub]")


class HubNotFound(HubError):
    """The Hub has no such model, or does not show it."""

    def __init__(self, hub_id: str, detail: str) -> None:
        super().__init__("hub_not_found", f"{hub_id}: not found on the Hub, or gated ({detail})", model=hub_id)


class HubUnreachable(HubError):
    """The Hub did not answer in time."""

    def __init__(self, hub_id: str, detail: str) -> None:
        super().__init__("hub_unreachable", f"{hub_id}: the Hub did not answer ({detail})", model=hub_id)
