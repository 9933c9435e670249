"""Benchmarks of cost: seconds, memory, requests and tokens of a night."""
