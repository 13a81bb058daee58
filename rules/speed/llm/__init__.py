"""Language models: seconds of a decode step, of a prefill, and what they make of a server under load."""
