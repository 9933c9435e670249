"""`leadline nightly`: complete a night. The stages are in `run.py`, the printed tables in `summary.py`."""
