"""The agent that runs on a GPU or CPU host; small when idle, heavy work only in child processes."""
