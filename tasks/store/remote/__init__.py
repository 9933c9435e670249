"""A lake on object storage: its files, copies of them on this machine, leases, and how DuckDB reads it."""
