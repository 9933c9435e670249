"""Analysis: comparisons and measurements of judges, on the published warehouse or on a suite."""
