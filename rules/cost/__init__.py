"""Money: what hardware costs to rent or to own, and what a unit of work costs on it."""
