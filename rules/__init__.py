"""Pure domain logic of GPUFit: same input, same answer; no network, clock, database or chat platform."""
