"""Distillation: verdicts and grades become training data for a smaller model."""
