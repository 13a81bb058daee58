"""Seconds: how fast a workload runs on given hardware, with what binds it and the range of each figure."""
