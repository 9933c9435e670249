"""Benchmarks of accuracy: agreement of judges, extractors, patterns and scores with people."""
