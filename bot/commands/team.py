"""What a team brings along: its catalogue rows and its policy, read from its folder (GPUFIT_HOME or --overrides)."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from bot.errors import BadUsage

if TYPE_CHECKING:
    from rules.catalog.catalogue import Catalogue
    from rules.policy import Policy

POLICY = "policy.toml"


def add_overrides(parser: argparse.ArgumentParser) -> None:
    """The option that names the folder."""
    parser.add_argument(
        "--overrides",
        metavar="DIR",
        type=Path,
        help="the team's folder: models.jsonl, gpus.csv, offers.csv, owned_hosts.csv, policy.toml "
        "(default: GPUFIT_HOME, else ~/.gpufit)",
    )


def folder(stated: Path | None) -> Path:
    """The team's folder; raises `BadUsage` where a stated one does not exist."""
    if stated is not None and not stated.is_dir():
        raise BadUsage("folder_missing", path=str(stated))
    if stated is not None:
        return stated
    from bot.sources.overrides import home_directory

    return home_directory()


def team_catalogue(stated: Path | None) -> Catalogue:
    """The packaged catalogue with the team's rows in front; raises `BadUsage` for the first wrong row."""
    from rules.catalog.catalogue import Catalogue

    place = folder(stated)
    if not place.is_dir():
        return Catalogue.load()
    from bot.sources.errors import SourceError
    from bot.sources.overrides import load_overrides

    try:
        return load_overrides(place).over(Catalogue.load())
    except SourceError as exc:
        raise BadUsage(exc.message_id, **exc.params) from exc


def team_policy(stated: Path | None) -> Policy:
    """The packaged policy with the team's values over it; raises `BadUsage` for a wrong file or expression."""
    import tomli

    from rules.policy import PolicyError, default_policy, policy_from

    path = folder(stated) / POLICY
    try:
        policy = policy_from(tomli.loads(path.read_text("utf-8")), base=default_policy())
        if policy.constraints:
            from rules.advice.team_rules import check

            check(policy.constraints)
        return policy
    except FileNotFoundError:
        return default_policy()
    except (OSError, UnicodeDecodeError, tomli.TOMLDecodeError, PolicyError) as exc:
        raise BadUsage("file_unusable", path=str(path), detail=str(exc)) from exc
