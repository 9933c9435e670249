"""Publish results: load the lake into the warehouse and write the report."""
