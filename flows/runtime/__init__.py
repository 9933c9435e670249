"""Running verbs: Prefect tasks, retries, the GPU slot, progress, and the temporary server."""
