"""Hardware, price and model facts: data files, typed loaders and name resolution."""
