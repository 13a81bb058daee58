"""`gpufit-agent`: the command of the host agent. Errors are one line on standard error; `--json` where a machine reads.

Exit codes: 0 done, 1 the work failed, 2 bad usage.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from bench_agent.exact_memory import TraceRequest, TraceResult

_GIB = 2**30
_TRACE_EXAMPLE = """examples:
  gpufit-agent trace llama-3-8b --method qlora --seq-len 2048 --checkpointing
  gpufit-agent trace ./config.json --method lora --micro-batch 4 --json
  gpufit-agent trace mypackage.training:make --optimizer sgd

A model is a built-in shape (--list), a Hugging Face config.json, or module:callable that returns (module, batch).
The figure is torch's allocated memory; CUDA context and fragmentation come on top."""


class _Parser(argparse.ArgumentParser):
    """Bad usage is one line that points to the help."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    parser = _Parser(prog="gpufit-agent", description="GPUFit's agent on a GPU or CPU host.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    _add_trace(commands)
    options = parser.parse_args(arguments)
    try:
        code: int = options.run(options)
    except KeyboardInterrupt:
        return 130
    return code


def _add_trace(commands: Any) -> None:
    from bench_agent.exact_memory import ATTENTIONS, DTYPE_NAMES, METHODS, OPTIMIZERS

    trace = commands.add_parser(
        "trace",
        help="peak memory of a training step, without a GPU",
        description="Runs a training step under torch's fake tensors and reports the allocated peak by phase.",
        epilog=_TRACE_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    trace.add_argument("model", nargs="?", help="built-in shape, config.json, or module:callable")
    trace.add_argument("--list", action="store_true", help="list the built-in shapes")
    trace.add_argument("--layers", type=int, help="cut a shape or config.json to so many layers")
    trace.add_argument("--method", choices=METHODS, default="full")
    trace.add_argument("--compute-dtype", choices=DTYPE_NAMES, default="bf16")
    trace.add_argument("--weights-dtype", choices=DTYPE_NAMES)
    trace.add_argument("--mixed-precision", action="store_true", help="autocast (fp32 weights for full fine-tuning)")
    trace.add_argument("--optimizer", choices=OPTIMIZERS, default="adamw")
    trace.add_argument("--micro-batch", type=int, default=1)
    trace.add_argument("--grad-accum", type=int, default=1)
    trace.add_argument("--seq-len", type=int, default=512)
    trace.add_argument("--checkpointing", action="store_true")
    trace.add_argument("--attention", choices=ATTENTIONS, default="sdpa")
    trace.add_argument("--lora-rank", type=int, default=16)
    trace.add_argument("--lora-targets", default="all_linear", help="all_linear, or layer names joined by commas")
    trace.add_argument("--timeout", type=float, default=300.0, metavar="SECONDS")
    trace.add_argument("--memory", type=float, default=8.0, metavar="GIB", help="bound on the tracing process")
    trace.add_argument("--json", action="store_true")
    trace.set_defaults(run=_trace)


def _trace(options: argparse.Namespace) -> int:
    from bench_agent.exact_memory import TraceError, TraceRefused, built_in_shapes, trace

    if options.list:
        names = list(built_in_shapes())
        print(json.dumps(names) if options.json else "\n".join(names))
        return 0
    try:
        request = _trace_request(options)
        result = trace(request, options.timeout, options.memory)
    except TraceRefused as exc:
        return _failed(exc, 2)
    except TraceError as exc:
        return _failed(exc, 1)
    print(json.dumps(_as_json(request, result)) if options.json else _as_text(request, result))
    return 0


def _trace_request(options: argparse.Namespace) -> TraceRequest:
    from bench_agent.exact_memory import TraceRefused, TraceRequest, cut, shape

    model = options.model
    if not model:
        raise TraceRefused("model: name a built-in shape, a config.json or module:callable")
    settings = {f.name: getattr(options, f.name) for f in fields(TraceRequest) if hasattr(options, f.name)}
    path = Path(model)
    if path.is_dir():
        path = path / "config.json"
    if path.is_file():
        try:
            config = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as exc:
            raise TraceRefused(f"{path}: {exc}") from None
        return TraceRequest(name=path.parent.name or path.stem, config=cut(config, options.layers), **settings)
    if ":" in model:
        if options.layers is not None:
            raise TraceRefused("layers: an own module is traced as it is")
        return TraceRequest(name=model, own_module=model, **settings)
    return TraceRequest(name=model, config=shape(model, options.layers), **settings)


def _as_json(request: TraceRequest, result: TraceResult) -> dict[str, Any]:
    return {"request": asdict(request), **asdict(result), "peak_phase": result.peak_phase}


def _as_text(request: TraceRequest, result: TraceResult) -> str:
    lines = [f"{request.name}: peak {result.peak_bytes / _GIB:.2f} GiB allocated, in the {result.peak_phase} phase"]
    lines += [f"  {phase:<10}{size / _GIB:10.2f} GiB" for phase, size in result.phases.items()]
    lines.append(f"  {'loaded':<10}{result.static_bytes / _GIB:10.2f} GiB, {result.trainable_params:,} trainable")
    lines.append("  " + ", ".join(f"{name} {version}" for name, version in result.versions.items()))
    return "\n".join(lines)


def _failed(error: Exception, code: int) -> int:
    print(f"gpufit-agent: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    raise SystemExit(main())
