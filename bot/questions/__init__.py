"""Text in, workload out: recognisers, lexicons and the resolver."""
