"""Unit tests for judges: a suite of cases, pass rates, and what a judge has to show."""
