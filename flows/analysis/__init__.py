"""Verbs for evaluators: compare, agreement, noise, metaeval, calibrate, ask."""
