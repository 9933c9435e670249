"""Analysis: comparisons and measurements of judges, on the published warehouse or a suite."""
