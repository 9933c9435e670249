"""Engines run a model on inputs; judges and stages interpret the outputs."""
