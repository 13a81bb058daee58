"""The tracing process: reads `TraceRequest`s as JSON lines, answers each with a result or an error object.

Run by `bench_agent.exact_memory`, never imported by it: torch, transformers and bitsandbytes load here only, and an
abort inside them ends this process alone. The argument is the memory bound in GiB over what the imports took.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from importlib.metadata import PackageNotFoundError, version
from typing import Any

_PACKAGES = ("torch", "transformers", "peft", "bitsandbytes")


def main(arguments: list[str]) -> int:
    """Serves requests until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever the libraries print must not mix with the answers
    warnings.simplefilter("ignore")
    sys.path.insert(0, os.getcwd())

    missing = _load()
    _bound_memory(float(arguments[0]))
    for line in sys.stdin:
        answer = {"error": missing} if missing else _answer(json.loads(line))
        print(json.dumps(answer), file=answers, flush=True)
    return 0


def _load() -> str | None:
    """Imports what a trace needs, one-threaded; says what is missing if it is."""
    try:
        import torch

        import bench_agent.trace_step  # noqa: F401
    except ImportError as exc:
        return f"a trace needs {', '.join(_PACKAGES)} (pip install 'gpufit[llm]'): {exc}"
    torch.set_num_threads(1)
    return None


def _answer(data: dict[str, Any]) -> dict[str, Any]:
    from bench_agent.exact_memory import TraceRefused, TraceRequest
    from bench_agent.trace_step import traced

    try:
        return {**traced(TraceRequest.from_json(data)), "versions": _versions()}
    except TraceRefused as exc:
        return {"error": str(exc), "refused": True}
    except MemoryError:
        return {"error": "the trace needs more memory than its bound"}
    except Exception as exc:
        text = str(exc).strip().splitlines()
        return {"error": f"{type(exc).__name__}: {text[0] if text else 'no message'}"}


def _bound_memory(gib: float) -> None:
    if sys.platform != "linux":  # elsewhere the time bound alone holds
        return
    import resource

    with open("/proc/self/statm", encoding="ascii") as statm:
        mapped = int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    limit = mapped + int(gib * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
