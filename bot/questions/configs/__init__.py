"""Pasted training configs, launch commands and out-of-memory messages as fields of a question."""

from bot.questions.configs.config_read import ConfigRead
from bot.questions.configs.read import read_config

__all__ = ["ConfigRead", "read_config"]
