"""Engines run a model on inputs; what the outputs mean is for judges and stages to say."""
