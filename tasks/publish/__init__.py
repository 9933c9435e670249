"""Publish: the lake into the warehouse and the report."""
