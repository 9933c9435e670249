"""Cuts an answer into sentences, each with its kind, citations and context, without a model."""
