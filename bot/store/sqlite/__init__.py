"""The store in one SQLite file: several threads and processes of one host share it."""
