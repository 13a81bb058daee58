"""Advice in, message out: templates, catalogues of words, charts."""
