"""What rules need from outside: override files, model configs, the Hub."""
