"""The verbs of the evaluator: compare, agreement, noise, metaeval, calibrate."""
