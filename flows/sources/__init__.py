"""Verbs on input and write-back: sources, init, articles, write-back."""
