"""Verbs on what comes in and what goes back: sources, new configs, articles, write-back."""
