"""The pipeline's stages without Prefect: each computes what is missing over the lake, and nothing else.

A stage takes a `Context` and the days to work on and returns what it did. Task shells, dry runs, benchmarks and tests
call the same functions.
"""
