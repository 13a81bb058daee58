"""The commands of `gpufit`, one a file: `add_arguments(parser)` and `run(args) -> exit code`."""
