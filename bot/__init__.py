"""Everything that talks to people: questions in, answers out."""
