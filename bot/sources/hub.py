"""Model configs from the Hugging Face Hub: only where the operator allows it, in five seconds, cached by commit."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from bot.sources.errors import HubNotFound, HubNotInstalled, HubSwitchedOff, HubUnreachable
from rules.records import dataclass

TIMEOUT_S = 5.0
_ID = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True, slots=True)
class HubModel:
    """What the Hub says of a model at one commit; `safetensors_params` is the total of its weight files, if known."""

    hub_id: str
    commit: str
    config: Mapping[str, Any]
    safetensors_params: int | None


class HubApi(Protocol):
    """The port: two questions to the Hub. Both raise `HubNotFound` or `HubUnreachable`."""

    def head(self, hub_id: str) -> tuple[str, int | None]:
        """Newest commit of a model, and the parameter total of its safetensors files."""
        ...

    def config(self, hub_id: str, commit: str) -> Mapping[str, Any]:
        """The model's `config.json` at that commit."""
        ...


class HuggingFaceHub:
    """The real adapter, over `huggingface_hub` (optional extra `hub`)."""

    def head(self, hub_id: str) -> tuple[str, int | None]:
        """Newest commit and parameter total."""
        from huggingface_hub import HfApi

        try:
            info = HfApi().model_info(hub_id, timeout=TIMEOUT_S)
        except Exception as exc:
            raise _translated(hub_id, exc) from exc
        safetensors = getattr(info, "safetensors", None)
        return str(info.sha), getattr(safetensors, "total", None)

    def config(self, hub_id: str, commit: str) -> Mapping[str, Any]:
        """The `config.json` at that commit."""
        from huggingface_hub import hf_hub_download

        try:
            path = hf_hub_download(hub_id, "config.json", revision=commit, etag_timeout=TIMEOUT_S)
        except Exception as exc:
            raise _translated(hub_id, exc) from exc
        return dict(json.loads(Path(path).read_text(encoding="utf-8")))


def _translated(hub_id: str, exc: Exception) -> HubNotFound | HubUnreachable:
    name = type(exc).__name__
    if name in (
        "RepositoryNotFoundError",
        "GatedRepoError",
        "EntryNotFoundError",
        "RevisionNotFoundError",
        "HFValidationError",
    ):
        return HubNotFound(hub_id, name)
    return HubUnreachable(hub_id, name)


class HubClient:
    """Reads models through a port and keeps each answer on disk under its commit."""

    def __init__(self, api: HubApi, cache: Path) -> None:
        self._api = api
        self._cache = cache

    def model(self, hub_id: str) -> HubModel:
        """The newest state of a model; the last one on disk where the Hub does not answer.

        Raises `HubNotFound`, or `HubUnreachable` where nothing is on disk either.
        """
        if not _ID.fullmatch(hub_id):
            raise HubNotFound(hub_id, "not of the form publisher/name")
        try:
            commit, total = self._api.head(hub_id)
        except HubUnreachable:
            kept = sorted(self._cache.glob(f"{_stem(hub_id)}@*.json"), key=lambda p: p.stat().st_mtime)
            if not kept:
                raise
            return _read(kept[-1])
        path = self._cache / f"{_stem(hub_id)}@{commit}.json"
        if path.exists():
            return _read(path)
        found = HubModel(hub_id, commit, self._api.config(hub_id, commit), total)
        self._cache.mkdir(parents=True, exist_ok=True)
        kept_fields = {"id": hub_id, "commit": commit, "params": total, "config": dict(found.config)}
        path.write_text(json.dumps(kept_fields), encoding="utf-8")
        return found


def hub_client(cache: Path, hub_id: str, environment: Mapping[str, str] = os.environ) -> HubClient:
    """The client over the real Hub; raises `HubSwitchedOff` without `GPUFIT_ALLOW_HUB=1`, `HubNotInstalled`."""
    if environment.get("GPUFIT_ALLOW_HUB", "").lower() not in ("1", "true", "yes"):
        raise HubSwitchedOff(hub_id)
    from importlib.util import find_spec

    if find_spec("huggingface_hub") is None:
        raise HubNotInstalled
    return HubClient(HuggingFaceHub(), cache)


def _stem(hub_id: str) -> str:
    return hub_id.replace("/", "--")


def _read(path: Path) -> HubModel:
    kept = json.loads(path.read_text(encoding="utf-8"))
    return HubModel(kept["id"], kept["commit"], kept["config"], kept["params"])
