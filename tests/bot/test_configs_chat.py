"""Pasting a config or a command into `gpufit chat`, whose messages are lines otherwise."""

from __future__ import annotations

import pytest

from bot.commands.chat import whole_messages


@pytest.mark.parametrize(
    ("lines", "messages"),
    [
        (["llama 3 8b on a 4090", "and in 8 bits?"], ["llama 3 8b on a 4090", "and in 8 bits?"]),
        (["fits?", "", "next"], ["fits?", "", "next"]),
        (["```yaml", "adapter: lora", "fsdp_config:", "  x: 1", "```", "ok?"],
         ["```yaml\nadapter: lora\nfsdp_config:\n  x: 1\n```", "ok?"]),
        (["vllm serve a/b \\", "  --tp 2", "ok?"], ["vllm serve a/b \\\n  --tp 2", "ok?"]),
        (["```", "never closed"], ["```\nnever closed"]),
        (["what of `ollama run x`?"], ["what of `ollama run x`?"]),
    ],
)  # fmt: skip
def test_lines_become_messages(lines: list[str], messages: list[str]) -> None:
    """A fence is one message to its end, a continued line belongs to the next; other lines stand alone."""
    assert list(whole_messages(iter(lines))) == messages
