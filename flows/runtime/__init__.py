"""How a verb runs: Prefect tasks, retries, the GPU slot, progress, the temporary server."""
