"""Judging: pairs of claim and evidence, verdicts on them, relevance and grades."""
