"""`leadline nightly`: completes a night. Its stages are in `run.py`, its tables in `summary.py`."""
