"""`gpufit catalog`: look models and devices up; add a team's own; refresh prices."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bot.commands import catalog_refresh
from bot.commands.team import add_overrides, folder, team_catalogue
from bot.errors import BadUsage

if TYPE_CHECKING:
    from rules.catalog.catalogue import Catalogue


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command and its five actions."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = actions.add_parser("show", help="everything known of one model or device")
    show.add_argument("name", help='for example "llama 3 8b" or "4090"')
    search = actions.add_parser("search", help="names that contain all the words, or come near them")
    search.add_argument("words", nargs="+")
    model = actions.add_parser("add-model", help="add a model by Hub id or path to a config.json")
    model.add_argument("source", help="Hub id (needs GPUFIT_ALLOW_HUB=1), or path to a config.json or its folder")
    model.add_argument("--name", help="id to file it under")
    device = actions.add_parser("add-device", help="add a device, or correct one")
    device.add_argument("name")
    device.add_argument("--like", metavar="DEVICE", help="take what is not set from this known device")
    device.add_argument("--set", metavar="COLUMN=VALUE", action="append", default=[], help="one column of gpus.csv")
    fresh = actions.add_parser("refresh", help="fresh cloud prices (needs GPUFIT_ALLOW_PRICES=1), or the previous back")
    catalog_refresh.add_arguments(fresh)
    for action in (show, search, model, device, fresh):
        add_overrides(action)
        action.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Does one action; what a file or a name gets wrong is one line on standard error."""
    from bot.sources.errors import SourceError
    from rules.catalog.errors import CatalogError

    act = _ACTIONS[args.action]
    try:
        found = act(args)
    except (SourceError, CatalogError) as exc:
        raise BadUsage(exc.message_id, **exc.params) from exc
    except OSError as exc:
        raise BadUsage("file_unusable", path=str(exc.filename), detail=exc.strerror or "") from exc
    if args.json:
        print(json.dumps(found, ensure_ascii=False, indent=2, default=str))
    elif args.action == "refresh":
        print("\n".join(catalog_refresh.text(found, args.lang)))
    else:
        print("\n".join(_text(found)))
    return 0


def _show(args: argparse.Namespace) -> dict[str, Any]:
    from rules.catalog.errors import UnknownName

    catalogue = team_catalogue(args.overrides)
    try:
        return {"device": _known(asdict(catalogue.find_accelerator(args.name)))}
    except UnknownName as no_device:
        try:
            return {"model": _known(asdict(catalogue.find_model(args.name).spec))}
        except UnknownName as no_model:
            near = ", ".join(dict.fromkeys((*no_model.suggestions, *no_device.suggestions)))
            if near:
                raise BadUsage("neither_model_nor_device_near", name=args.name, near=near) from None
            raise BadUsage("neither_model_nor_device", name=args.name) from None


def _search(args: argparse.Namespace) -> list[dict[str, Any]]:
    catalogue = team_catalogue(args.overrides)
    words = [word for text in args.words for word in text.lower().split()]
    found = [row for row in _names(catalogue) if _holds(row, words)]
    return found or list(_near(" ".join(words), _names(catalogue)))


def _holds(row: dict[str, Any], words: list[str]) -> bool:
    return all(word in row["name"].lower() or word in row["also"] for word in words)


def _names(catalogue: Catalogue) -> Iterator[dict[str, Any]]:
    for device in catalogue.accelerators:
        yield {
            "kind": "device",
            "name": device.name,
            "says": f"{device.memory_gib:g} GiB, {device.tier}",
            "also": " ".join(device.aliases),
        }
    for model in catalogue.models:
        yield {
            "kind": "model",
            "name": model.hf_id,
            "says": f"{model.params_b:.3g} B parameters, {model.arch_type}",
            "also": " ".join(model.aliases).lower(),
        }


def _near(wanted: str, rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    from rapidfuzz import fuzz, process

    listed = {row["name"]: row for row in rows}
    for name, _, _ in process.extract(wanted, list(listed), scorer=fuzz.WRatio, limit=5, score_cutoff=60):
        yield listed[name]


def _add_model(args: argparse.Namespace) -> dict[str, Any]:
    from bot.sources.additions import add_model

    place = _writable(args.overrides)
    return {"added to": str(place), "model": _known(asdict(add_model(args.source, place, args.name)))}


def _add_device(args: argparse.Namespace) -> dict[str, Any]:
    from bot.sources.additions import add_device

    fields = {"name": args.name}
    for pair in args.set:
        column, equals, value = pair.partition("=")
        if not equals:
            raise BadUsage("usage_column_value", pair=pair)
        fields[column.strip()] = value.strip()
    place = _writable(args.overrides)
    return {"added to": str(place), "device": _known(asdict(add_device(fields, place, args.like)))}


def _writable(stated: Path | None) -> Path:
    place = folder(stated)
    place.mkdir(parents=True, exist_ok=True)
    return place


def _known(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if value not in (None, "", (), [], {})}


def _text(found: Any) -> Iterator[str]:
    if isinstance(found, list):
        if not found:
            yield "nothing found"
        for row in found:
            yield f"{row['kind']:7} {row['name']:48} {row['says']}"
        return
    for title, content in found.items():
        if not isinstance(content, dict):
            yield f"{title}: {content}"
            continue
        for key, value in content.items():
            shown = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
            yield f"{key:22} {shown}"


_ACTIONS: dict[str, Callable[[argparse.Namespace], Any]] = {
    "show": _show,
    "search": _search,
    "add-model": _add_model,
    "add-device": _add_device,
    "refresh": catalog_refresh.run,
}
