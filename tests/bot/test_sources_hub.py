"""Models from the Hub, through a fake: switched off by default, cached by commit, clear errors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bot.sources.errors import HubNotFound, HubSwitchedOff, HubUnreachable
from bot.sources.hub import HubClient, hub_client

CONFIG: dict[str, Any] = {
    "model_type": "llama", "vocab_size": 1000, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "tie_word_embeddings": True,
}  # fmt: skip


class FakeHub:
    """A Hub with one model, which can be unplugged and counts its downloads."""

    def __init__(self, commit: str = "c1") -> None:
        self.commit = commit
        self.plugged = True
        self.downloads = 0

    def head(self, hub_id: str) -> tuple[str, int | None]:
        """Newest commit and total."""
        if not self.plugged:
            raise HubUnreachable(hub_id, "Timeout")
        if hub_id != "acme/tiny":
            raise HubNotFound(hub_id, "RepositoryNotFoundError")
        return self.commit, 123_456

    def config(self, hub_id: str, commit: str) -> Mapping[str, Any]:
        """The config at a commit."""
        self.downloads += 1
        return {**CONFIG, "num_hidden_layers": int(commit[1:])}


def test_the_hub_is_off_unless_the_operator_says_so(tmp_path: Path) -> None:
    """Without the switch nothing leaves the machine, and the error says how to go on."""
    with pytest.raises(HubSwitchedOff, match=r"GPUFIT_ALLOW_HUB=1.*config\.json"):
        hub_client(tmp_path, "acme/tiny", environment={})


def test_a_commit_is_downloaded_once(tmp_path: Path) -> None:
    """The second question is answered from disk; a new commit is fetched."""
    hub = FakeHub()
    client = HubClient(hub, tmp_path)
    assert client.model("acme/tiny") == client.model("acme/tiny")
    assert hub.downloads == 1
    hub.commit = "c2"
    assert client.model("acme/tiny").config["num_hidden_layers"] == 2
    assert hub.downloads == 2


def test_an_unplugged_hub_answers_from_disk_or_fails(tmp_path: Path) -> None:
    """The last known state serves while the Hub does not answer; without one the error is clear."""
    hub = FakeHub()
    client = HubClient(hub, tmp_path)
    hub.plugged = False
    with pytest.raises(HubUnreachable, match="Timeout"):
        client.model("acme/tiny")
    hub.plugged = True
    known = client.model("acme/tiny")
    hub.plugged = False
    assert client.model("acme/tiny") == known


@pytest.mark.parametrize("hub_id", ["acme/none", "no-slash", "a/b/../../etc", ""])
def test_what_is_no_model_is_not_found(tmp_path: Path, hub_id: str) -> None:
    """Unknown ids and texts that are no id give the same kind of error, and nothing is written."""
    with pytest.raises(HubNotFound):
        HubClient(FakeHub(), tmp_path).model(hub_id)
    assert list(tmp_path.iterdir()) == []
