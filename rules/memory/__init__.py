"""Bytes: how much memory a workload needs on each device, part by part and phase by phase."""
