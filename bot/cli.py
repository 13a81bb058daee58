"""The `gpufit` command: finds the subcommand's module, imports that one alone, and turns errors into exit codes.

Each file of `bot/commands` is one command with `add_arguments(parser)` and `run(args) -> exit code`. Nothing else is
imported before the command is known, so that `gpufit --help` and short commands start fast.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bot.errors import BadUsage, CommandError


@dataclass(frozen=True, slots=True)
class Command:
    """One line of `gpufit --help`: where the command lives, what it does and an example."""

    module: str
    summary: str
    example: str


COMMANDS: dict[str, Command] = {
    "ask": Command(
        "bot.commands.ask",
        "Answer one question: does it fit, on what, and what to change if not.",
        'gpufit ask "13B fine-tune QLoRA"',
    ),
    "chat": Command(
        "bot.commands.chat",
        "Answer questions and follow-ups, at a prompt or from a pipe.",
        'echo "bge-large on cpu, 5 rps" | gpufit chat',
    ),
    "parse": Command(
        "bot.commands.parse",
        "Show what was understood of a question, without answering it.",
        'gpufit parse "sdxl lora on 12 GB" --json',
    ),
    "catalog": Command(
        "bot.commands.catalog",
        "Look up models and devices, add a team's own, refresh prices.",
        'gpufit catalog show "llama 3 8b"',
    ),
    "study": Command(
        "bot.commands.study",
        "Measure before buying: keep a comparison, add days measured, compare again.",
        'gpufit study start qlora "rent or buy for 40 h a week of 13B QLoRA"',
    ),
    "estimate": Command(
        "bot.commands.estimate",
        "Predict the memory of published cases (JSON in, JSON out).",
        "gpufit estimate --json --batch cases.jsonl",
    ),
    "evaluate": Command(
        "bot.commands.evaluate",
        "Score the predictions against measured cases.",
        "gpufit evaluate tests/accuracy/cases/train.jsonl",
    ),
    "store": Command(
        "bot.commands.store",
        "Show what the bot remembers, delete what is old, export the audit trail.",
        "gpufit store info",
    ),
    "backup": Command(
        "bot.commands.backup",
        "Copy the bot's store while it runs, or restore a copy.",
        "gpufit backup gpufit-backup.db",
    ),
    "cases": Command(
        "bot.commands.cases",
        "Export what users measured as cases.",
        "gpufit cases export",
    ),
    "doctor": Command(
        "bot.commands.doctor",
        "Check tokens, database, catalogue and clock, and say what to do.",
        "gpufit doctor --online",
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code (0 answered, 2 bad usage, 3 no answer without more)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    gc.set_threshold(50_000)  # start-up makes many long-lived objects; collecting among them is a tenth of the time
    try:
        return _dispatch(arguments)
    except CommandError as error:
        from bot.commands.spoken import in_words

        print(f"gpufit: {in_words(error, arguments)}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if os.environ.get("GPUFIT_DEBUG"):
            raise
        one_line = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"gpufit: unexpected {one_line} (GPUFIT_DEBUG=1 shows where)", file=sys.stderr)
        return 1


def _dispatch(arguments: list[str]) -> int:
    if arguments and arguments[0] in COMMANDS:
        name = arguments[0]
        module: Any = importlib.import_module(COMMANDS[name].module)
        parser = command_parser(name, module)
        code: int = module.run(parser.parse_args(arguments[1:]))
        return code
    parser = _overview()
    chosen = parser.parse_args(arguments)
    if chosen.version:
        from importlib.metadata import version

        print(f"gpufit {version('gpufit')}")
        return 0
    if chosen.command is None:
        parser.print_help()
        return 2
    from difflib import get_close_matches

    near = get_close_matches(chosen.command, COMMANDS, n=1)
    if near:
        raise BadUsage("usage_unknown_command_near", name=chosen.command, near=near[0])
    raise BadUsage("usage_unknown_command", name=chosen.command)


def command_parser(name: str, module: Any) -> argparse.ArgumentParser:
    """The argument parser of one command, with its example in the help text."""
    command = COMMANDS[name]
    parser = argparse.ArgumentParser(
        prog=f"gpufit {name}",
        description=command.summary,
        epilog=f"example:\n  {command.example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    return parser


def _overview() -> argparse.ArgumentParser:
    width = max(map(len, COMMANDS))
    lines = [f"  {name.ljust(width)}  {command.summary}" for name, command in COMMANDS.items()]
    first = next(iter(COMMANDS.values()))
    parser = argparse.ArgumentParser(
        prog="gpufit",
        usage="gpufit [--version] COMMAND …",
        description="What hardware a machine-learning workload needs, with the working shown.",
        epilog="commands:\n"
        + "\n".join(lines)
        + f"\n\nexample:\n  {first.example}\n\n'gpufit COMMAND --help' says more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
