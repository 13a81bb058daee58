"""`gpufit evaluate`: predictions against measured cases, as a table or JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bot.errors import BadUsage


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="JSON Lines of measured cases or labelled questions")
    parser.add_argument("--json", action="store_true", help="print every group as JSON")


def run(args: argparse.Namespace) -> int:
    """Scores the files and prints the report."""
    from bot.evaluate import evaluate

    report = evaluate(_rows(args.files)).plain()
    print(json.dumps(report, indent=2) if args.json else "\n".join(_table(report)))
    return 0


def _rows(files: list[str]) -> Iterator[dict[str, Any]]:
    for name in files:
        try:
            text = Path(name).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as exc:
            detail = exc.strerror if isinstance(exc, OSError) else exc.reason
            raise BadUsage("file_unusable", path=name, detail=detail or "") from exc
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as exc:
                raise BadUsage("line_not_json", path=name, line=number, detail=exc.msg) from exc
            if not isinstance(row, dict):
                raise BadUsage("line_not_an_object", path=name, line=number)
            yield row


def _table(report: Mapping[str, Any]) -> Iterator[str]:
    for kind, scores in report["kinds"].items():
        yield f"{kind}"
        if kind == "verdict":
            yield from _verdict_lines(scores)
        elif kind == "question":
            yield from (f"  {name}: {value}" for name, value in scores.items() if not isinstance(value, (dict, list)))
        else:
            for key, result in scores.items():
                yield from _error_lines(key, result)
        yield ""


_HEAD = f"  {'':44}{'count':>6}{'supported':>10}{'median':>8}{'p90':>8}{'<10 %':>7}{'<20 %':>7}{'bias':>8}"


def _error_lines(key: str, result: Mapping[str, Any]) -> Iterator[str]:
    yield f"  {key}"
    yield _HEAD
    yield _error_line("high and medium confidence", result["high and medium"])
    for dimension, groups in result["groups"].items():
        for label, errors in groups.items():
            yield _error_line(f"  {dimension}: {label}", errors)


def _error_line(name: str, e: Mapping[str, Any]) -> str:
    def share(value: float | None, sign: str = "") -> str:
        return "-" if value is None else f"{100 * value:{sign}.1f}%"

    return (
        f"  {name[:44]:44}{e['count']:>6}{share(e['supported']):>10}{share(e['median']):>8}{share(e['p90']):>8}"
        f"{share(e['within_10']):>7}{share(e['within_20']):>7}{share(e['bias'], '+'):>8}"
    )


def _verdict_lines(scores: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield f"  {'':44}{'count':>6}{'balanced':>10}{'tight':>8}{'false fits':>12}{'false ooms':>12}"
    for name, s in scores.items():
        balanced = "-" if s["balanced_accuracy"] is None else f"{100 * s['balanced_accuracy']:.1f}%"
        yield (
            f"  {name:44}{s['count']:>6}{balanced:>10}{100 * s['tight_share']:>7.1f}%"
            f"{s['false_fits']:>7} of {s['ooms']:<2}{s['false_ooms']:>12}"
        )
