"""Tiny models with real tokenizers, made in seconds."""
