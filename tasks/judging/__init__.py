"""Judging: pairs of claim and evidence, their verdicts, relevance scores and grades."""
