"""Charts: one specification, drawn for the terminal, as a PNG and as SVG for the browser."""
