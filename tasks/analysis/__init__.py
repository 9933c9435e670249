"""Analysis: what the evaluator asks of the published warehouse and of a suite."""
