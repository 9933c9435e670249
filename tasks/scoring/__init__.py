"""Scoring: turns verdicts into claim results, trace scores, nightly tables with intervals, and alerts."""
