"""Distillation: turn verdicts and grades into training data for a smaller model."""
