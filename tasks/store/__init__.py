"""Storage: the lake (Parquet parts, the truth) and the warehouse (DuckDB, derived). DuckDB is imported here only."""
